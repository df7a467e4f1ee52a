package redis

import (
	"context"
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

// NewFake returns a schedule on a fake store.
func NewFake(store FakeStore, name string, r scheduler.Rate, burst int64, p Policy, opts ...Option) (*Schedule, error) {
	c, err := configure(opts)
	if err != nil {
		return nil, err
	}
	l := &link{store: store, site: site{name: "fake"}, timeout: c.timeout, onState: c.onChange, id: "fake"}
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
