package redis

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

var (
	//go:embed records.lua
	recordsSource string
	//go:embed pace.lua
	paceSource string
	//go:embed fixed.lua
	fixedSource string
	//go:embed log.lua
	logSource string

	paceScript  = goredis.NewScript(recordsSource + paceSource)
	fixedScript = goredis.NewScript(recordsSource + fixedSource)
	logScript   = goredis.NewScript(logSource)
)

// A server is the store that is Redis, or Valkey. Each step is a script, which names one key: so
// a cluster can move that while it is in use.
type server struct {
	client goredis.UniversalClient
	batch  *batch
}

func newServer(client goredis.UniversalClient) *server {
	return &server{client: client, batch: &batch{client: client}}
}

// failed has the client of a cluster look for the masters: by itself it does so once a minute.
func (s *server) failed(ctx context.Context) {
	if c, ok := s.client.(*goredis.ClusterClient); ok {
		c.ReloadState(ctx)
	}
}

func (h header) args(more ...any) []any {
	return append([]any{h.expires, h.lane, h.number, h.lost, h.keep.Microseconds()}, more...)
}

func (s *server) pace(ctx context.Context, key string, r paceRequest) (paceReply, error) {
	var returned strings.Builder
	for _, t := range r.returned {
		fmt.Fprintf(&returned, "%d %d %d %d;", t.tag, t.is.first.us, t.is.first.frac, t.is.units)
	}
	within := int64(-1)
	if r.within >= 0 {
		within = r.within.Microseconds()
	}
	got, err := s.batch.run(ctx, paceScript, key, r.args(
		r.pace.p, r.pace.q, r.burst, r.epoch, r.known, r.remaining.Microseconds(), ceilMicros(r.hold), flag(r.even),
		r.settle.Microseconds(), quiet.Microseconds(), returned.String(), charges(r.charged),
		r.cost, r.lead, within, r.rest, r.span.Microseconds()))
	if err != nil {
		return paceReply{}, err
	}
	f := fields{got: got}
	reply := paceReply{heard: f.heard()}
	if reply.late {
		return reply, f.err
	}
	reply.epoch, reply.hold, reply.living = f.text(), f.number(), f.number()
	reply.next, reply.tat = moment{f.number(), f.number()}, f.number()
	for text := range strings.SplitSeq(strings.TrimSuffix(f.text(), ";"), ";") {
		if text == "" {
			continue
		}
		var got row
		if _, err := fmt.Sscan(text, &got.first.us, &got.first.frac, &got.units); err != nil {
			f.fail(err)
		}
		reply.rows = append(reply.rows, got)
	}
	return reply, f.err
}

func (s *server) count(ctx context.Context, key string, r countRequest) (countReply, error) {
	var returned strings.Builder
	script, args := fixedScript, r.args(r.window.Microseconds(), r.shift)
	if r.log {
		script, args = logScript, r.args(r.window.Microseconds())
	}
	for _, t := range r.returned {
		if r.log {
			fmt.Fprintf(&returned, "%s/%d;", t.is.of, t.is.units)
		} else {
			fmt.Fprintf(&returned, "%d %d %s;", t.tag, t.is.units, t.is.of)
		}
	}
	got, err := s.batch.run(ctx, script, key, append(args, r.limit, r.units, r.least, returned.String(), charges(r.charged)))
	if err != nil {
		return countReply{}, err
	}
	f := fields{got: got}
	reply := countReply{heard: f.heard()}
	if !reply.late {
		reply.living, reply.granted, reply.at, reply.of = f.number(), f.number(), f.number(), f.text()
	}
	return reply, f.err
}

// fields reads a reply from its first field on.
type fields struct {
	got []any
	err error
}

func (f *fields) next() any {
	if len(f.got) == 0 {
		f.fail(errors.New("it is too short"))
		return nil
	}
	v := f.got[0]
	f.got = f.got[1:]
	return v
}

func (f *fields) number() int64 {
	n, ok := f.next().(int64)
	if !ok {
		f.fail(errors.New("it has no number where there should be one"))
	}
	return n
}

func (f *fields) text() string {
	s, ok := f.next().(string)
	if !ok {
		f.fail(errors.New("it has no text where there should be some"))
	}
	return s
}

func (f *fields) heard() heard { return heard{now: f.number(), late: f.text() == "late"} }

func (f *fields) fail(err error) {
	if f.err == nil {
		f.err = fmt.Errorf("redis: the reply of a step: %w", err)
	}
}

func charges(all []tagged[int64]) string {
	var b strings.Builder
	for _, t := range all {
		fmt.Fprintf(&b, "%d %d;", t.tag, t.is)
	}
	return b.String()
}

func ceilMicros(d time.Duration) int64 {
	return int64(min(roundUp(d, time.Microsecond)/time.Microsecond, maxTerm))
}

func flag(set bool) string {
	if set {
		return "1"
	}
	return strconv.Itoa(0)
}
