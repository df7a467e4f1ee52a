package redis

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// WithSkew makes a process live by a clock that is wrong by d.
func WithSkew(d time.Duration) Option {
	return func(c *config) { c.now = func() time.Time { return time.Now().Add(d) } }
}

// Keys returns the key of the limit.
func (s *Schedule) Keys() []string { return []string{s.key} }

// GroupKeys returns that of a key of a Group.
func GroupKeys(prefix, key string) []string { return []string{keyOfGroup(prefix, key)} }

// step runs one step of a pace.
func (s *Schedule) step(ctx context.Context, r *paceRequest) (got paceReply, err error) {
	err = s.link.ask(ctx, &r.header, false, func(ctx context.Context) (heard, error) {
		var err error
		got, err = s.link.store.pace(ctx, s.key, *r)
		return got.heard, err
	})
	return got, err
}

// Step runs one step, as a process without a line would.
func (s *Schedule) Step(ctx context.Context, units int64) (granted int64, wait time.Duration, err error) {
	r := s.request(s.lane, time.Now())
	r.rest, r.span = units, 1<<50
	got, err := s.step(ctx, &r)
	if err != nil {
		return 0, 0, err
	}
	for _, row := range got.rows {
		granted += row.units
	}
	first := s.pace.sub(got.rows[0].first, s.burst-1)
	return granted, max(s.pace.after(first, got.now), 0), nil
}

// A Path is a way to a store, to which something may happen before and after each request.
type Path struct {
	inner  store
	Before func(context.Context) error
	After  func() error
}

func (p *Path) pace(ctx context.Context, key string, r paceRequest) (got paceReply, err error) {
	if err = p.Before(ctx); err != nil {
		return got, err
	}
	got, err = p.inner.pace(context.WithoutCancel(ctx), key, r)
	return got, errors.Join(err, p.After())
}

func (p *Path) count(ctx context.Context, key string, r countRequest) (got countReply, err error) {
	if err = p.Before(ctx); err != nil {
		return got, err
	}
	got, err = p.inner.count(context.WithoutCancel(ctx), key, r)
	return got, errors.Join(err, p.After())
}

func (p *Path) failed(context.Context) {}

// On returns a schedule at the end of a path.
func (p *Path) On(client goredis.UniversalClient, name string, r scheduler.Rate, burst int64, how Policy, opts ...Option) (*Schedule, error) {
	c, err := configure(opts)
	if err != nil {
		return nil, err
	}
	p.inner = newServer(client)
	return newSchedule(makeLink(p, site{name: "fake"}, c), keyOf(name, kindPace), r, burst, how, c)
}

// GroupOn returns a Group at the end of a path.
func GroupOn[K ~string](p *Path, client goredis.UniversalClient, prefix string, r scheduler.Rate, burst int64, how Policy, opts ...Option) (*shaper.Group[K], error) {
	c, err := configure(opts)
	if err != nil {
		return nil, err
	}
	p.inner = newServer(client)
	return newGroup[K](makeLink(p, site{name: "fake"}, c), prefix, r, burst, how, c)
}

// Meet has the store be known, as if it had answered before, at once.
func (s *Schedule) Meet() {
	s.link.measured(0)
	s.link.answered(nil)
}

// Busy reports whether a timer is armed or a step under way.
func (s *Schedule) Busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stepping || s.timer != nil
}

// Take takes units at once.
func (q *Quota) Take(ctx context.Context, units int64) (granted int64, err error) {
	q.link.clock.Store(nil) // tests set the clock of the server
	r := countRequest{header: q.link.next(q.lane, time.Now()), log: q.log, window: q.counted, shift: q.shift, limit: q.limit, units: units, least: 1}
	err = q.link.ask(ctx, &r.header, false, func(ctx context.Context) (heard, error) {
		got, err := q.link.store.count(ctx, q.key, r)
		granted = got.granted
		return got.heard, err
	})
	return granted, err
}

// GiveBackTwice takes a unit and hands it back in a request that arrives twice; between is what
// happens between.
func GiveBackTwice(ctx context.Context, s *Schedule, between func()) {
	step := func(r paceRequest) paceReply {
		got, err := s.step(ctx, &r)
		if err != nil {
			panic(err)
		}
		return got
	}
	r := s.request(s.lane, time.Now())
	r.rest = 1
	got := step(r)
	s.epoch = got.epoch
	r = s.request(s.lane, time.Now())
	r.returned = []tagged[row]{{r.number, got.rows[0]}}
	step(r)
	between()
	step(r)
}

// A Departure is what a line has let leave.
type Departure struct {
	At    time.Time     // when, by the true clock
	Late  time.Duration // how much later its slot is here than on the server; 0 if Alone
	Alone bool          // by the policy, in no slot
}

// A Watched is a schedule that notes what its line lets leave, and when. A test on the
// real clock can then go by what the line has decided, and not by when the machine had
// time for the goroutines that were told.
type Watched struct {
	*Schedule
	skew time.Duration

	noting sync.Mutex
	left   []Departure
}

// Watch returns a Watched of a schedule whose clock is wrong by skew.
func Watch(s *Schedule, skew time.Duration) *Watched { return &Watched{Schedule: s, skew: skew} }

// Commit implements [scheduler.Scheduler].
func (w *Watched) Commit(due, left time.Time, n int64) {
	late, alone := w.lateness(n)
	w.Schedule.Commit(due, left, n)
	w.noting.Lock()
	defer w.noting.Unlock()
	for range n {
		w.left = append(w.left, Departure{At: left.Add(-w.skew), Late: late, Alone: alone})
	}
}

// lateness compares the clock of the server with that of this machine, on which it runs:
// a slot is later here by as much as the reply, or the process that reads it, took.
func (w *Watched) lateness(n int64) (late time.Duration, alone bool) {
	s := w.Schedule
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.units < n {
		return 0, true
	}
	for _, r := range s.rows {
		late = max(late, r.read.heard.Add(-w.skew).Sub(time.UnixMicro(r.read.store)))
		if n -= r.units; n <= 0 {
			break
		}
	}
	return late, false
}

// Take returns what has left since it was called last.
func (w *Watched) Take() []Departure {
	w.noting.Lock()
	defer w.noting.Unlock()
	left := w.left
	w.left = nil
	return left
}

// A QuotaDeparture is a unit that a line has let leave, and what it is known to lie between.
type QuotaDeparture struct {
	Start  int64     // when its window began, in microseconds of the server; 0 for a log
	Before time.Time // it left at this instant or after it
	After  time.Time // and its unit had been taken by this one
}

// A WatchedQuota is for a [Quota] what a [Watched] is for a [Schedule].
type WatchedQuota struct {
	*Quota

	noting sync.Mutex
	left   []QuotaDeparture
}

// Commit implements [scheduler.Scheduler].
func (w *WatchedQuota) Commit(due, left time.Time, n int64) {
	w.Quota.mu.Lock()
	start := int64(-1)
	if len(w.rows) > 0 {
		_, text, _ := strings.Cut(w.rows[0].of, "/")
		start, _ = strconv.ParseInt(text, 10, 64)
	}
	w.Quota.mu.Unlock()
	now := time.Now()
	w.Quota.Commit(due, left, n)
	w.noting.Lock()
	defer w.noting.Unlock()
	for range n {
		w.left = append(w.left, QuotaDeparture{start, left, now})
	}
}

// Left returns what has left until now.
func (w *WatchedQuota) Left() []QuotaDeparture {
	w.noting.Lock()
	defer w.noting.Unlock()
	return slices.Clone(w.left)
}

// Kill has the schedule do nothing any more, as if its process had been killed.
func (s *Schedule) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut(0, s.units)
	s.closed = true
	s.setTimerLocked(time.Time{}, time.Time{})
}
