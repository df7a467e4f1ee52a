package redis

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// A store runs scripts. The tests have one of their own.
type store interface {
	eval(ctx context.Context, s *goredis.Script, keys []string, args []any) ([]int64, error)
}

type server struct{ client goredis.Scripter }

// eval runs a script by its digest, and by its text if the server does not know it: one
// that does not has not run it. So it is charged once.
func (s server) eval(ctx context.Context, script *goredis.Script, keys []string, args []any) ([]int64, error) {
	return script.Run(ctx, s.client, keys, args...).Int64Slice()
}

// A link is the way to the store: it bounds how long an operation takes, and knows
// whether the store can be asked at all. Limits of a Group share one.
type link struct {
	store   store
	site    site
	timeout time.Duration
	onState func(State)

	id   string // of this link among all processes
	next atomic.Int64

	clock     atomic.Pointer[reading]
	lingering atomic.Int64 // operations that have taken too long, and are not over yet

	breaker
}

const (
	// probeEvery is how often a store that is away is looked for, while calls come.
	probeEvery = 250 * time.Millisecond
	// maxLingering bounds the operations that the client has not ended in time.
	maxLingering = 8
)

func newLink(client goredis.UniversalClient, c *config) (*link, error) {
	if client == nil {
		return nil, errors.New("redis: client nil: must be a client")
	}
	var id [8]byte
	rand.Read(id[:])
	l := &link{site: siteOf(client), timeout: c.timeout, onState: c.onChange, id: hex.EncodeToString(id[:])}
	if limited, ok := client.(interface {
		WithTimeout(time.Duration) *goredis.Client
	}); ok {
		// A client minds no context while it reads, unless it was told to; so that a
		// hanging server ties up no goroutines, its reads end by themselves.
		client = limited.WithTimeout(c.timeout)
	}
	l.store = server{client}
	return l, nil
}

// requestID returns an id that no other request of any process has.
func (l *link) requestID() string {
	return l.id + "-" + strconv.FormatInt(l.next.Add(1), 36)
}

// eval runs a script and returns what it replied, within the timeout. A reply that comes
// later is dropped: what it has reserved is lost, and never used.
func (l *link) eval(ctx context.Context, s *goredis.Script, keys []string, args []any) ([]int64, error) {
	if l.lingering.Load() >= maxLingering {
		return nil, errTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, l.timeout, errTimeout)
	defer cancel()
	type answer struct {
		reply []int64
		err   error
	}
	done := make(chan answer, 1)
	began := time.Now()
	go func() {
		// What outlives the timeout counts, and not what outlives its caller: that this one is
		// impatient says nothing about the store.
		late := time.AfterFunc(l.timeout, func() { l.lingering.Add(1) })
		reply, err := l.store.eval(ctx, s, keys, args)
		if !late.Stop() {
			l.lingering.Add(-1)
		}
		done <- answer{reply, err}
	}()
	select {
	case a := <-done:
		// A process that was stopped reads a reply long after it came, and would take its
		// slots for later than they are.
		if a.err != nil && context.Cause(ctx) == errTimeout || time.Since(began) > l.timeout {
			return nil, errTimeout
		}
		return a.reply, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
