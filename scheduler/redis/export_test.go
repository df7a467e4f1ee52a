package redis

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/scheduler"
)

// WithSkew makes a process live by a clock that is wrong by d.
func WithSkew(d time.Duration) Option {
	return func(c *config) { c.now = func() time.Time { return time.Now().Add(d) } }
}

// Keys returns the keys of a request.
func (s *Schedule) Keys() []string { return s.keys.forRequest("id") }

// GroupKeys returns the keys of a request for a key of a Group.
func GroupKeys(prefix, key string) []string { return groupKeyring(prefix, key).forRequest("id") }

// Step runs one step, as a process without a line would.
func (s *Schedule) Step(ctx context.Context, units int64) (granted int64, wait time.Duration, err error) {
	got, err := s.link.step(ctx, s.keys, s.pace, s.burst, request{units: units, within: -1})
	if err != nil {
		return 0, 0, err
	}
	first := s.pace.sub(got.tat, s.burst-1)
	return got.granted, max(s.pace.after(first, got.now), 0), nil
}

// A FakeStore is what a test has in the place of a server. It is called with the
// arguments of the step script, and replies what that would.
type FakeStore func(ctx context.Context, keys []string, args []any) ([]int64, error)

func (f FakeStore) eval(ctx context.Context, _ *goredis.Script, keys []string, args []any) ([]int64, error) {
	return f(ctx, keys, args)
}

var fakes atomic.Int64

// NewFake returns a schedule on a fake store.
func NewFake(store FakeStore, name string, r scheduler.Rate, burst int64, p Policy, opts ...Option) (*Schedule, error) {
	c, err := configure(opts)
	if err != nil {
		return nil, err
	}
	id := fmt.Sprint("fake", fakes.Add(1))
	l := &link{store: store, site: site{name: "fake"}, timeout: c.timeout, onState: c.onChange, id: id}
	return newSchedule(l, newKeyring(name, kindPace), r, burst, p, c)
}

// Busy reports whether a timer is armed or a step under way.
func (s *Schedule) Busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taking || s.looking != nil || s.delayed != nil
}

// Take takes units at once.
func (q *Quota) Take(ctx context.Context, units int64) (granted int64, err error) {
	id := q.link.requestID()
	q.link.clock.Store(nil) // tests set the clock of the server
	got, err := q.link.timely(ctx, q.script, q.keys.forRequest(id), []any{
		q.counts, q.shift, q.limit, units, 1, 0, 0, q.origin(grant{}), id, 1000,
	}, 4, 1)
	if err != nil {
		return 0, err
	}
	return got[1], nil
}

// GiveBackTwice takes a unit and hands it back in a request that arrives twice; between
// is what happens between.
func GiveBackTwice(ctx context.Context, s *Schedule, between func()) {
	step := func(r request) reply {
		got, err := s.link.step(ctx, s.keys, s.pace, s.burst, r)
		if err != nil {
			panic(err)
		}
		return got
	}
	got := step(request{units: 1, within: -1})
	r := request{within: -1, surplus: surplus{back: true, rest: got.tat, tail: s.pace.add(got.tat, 1), returned: 1}}
	n := s.link.next.Load()
	step(r)
	between()
	s.link.next.Store(n) // the same name
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
	if s.hand.units < n {
		return 0, true
	}
	for _, r := range s.hand.runs {
		late = max(late, r.anchor.Add(-w.skew).Sub(time.UnixMicro(r.now)))
		if n -= r.end - r.next; n <= 0 {
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
	if len(w.Quota.hand) > 0 {
		start = w.Quota.hand[0].start
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

// StepScript is the script of a pace.
var StepScript = stepScript
