package redis

import (
	"fmt"
	"math"
	"time"

	"github.com/sluice-go/sluice/shaper"
)

const (
	defaultHorizon = 50 * time.Millisecond
	leastTolerance = 5 * time.Millisecond // of those that are not set
	defaultTimeout = 100 * time.Millisecond
	defaultLease   = 250 * time.Millisecond

	// livingFor is how long a process counts as one that shares a limit, after its latest step
	// and behind its latest slot.
	livingFor = 10 * time.Second

	never = time.Duration(math.MaxInt64)
)

// An Option changes what [New], [NewFixedWindow], [NewSlidingLog] and [NewGroup] make.
// A nil one is a programming error and panics.
type Option func(*config)

type config struct {
	horizon      time.Duration
	tolerance    time.Duration // 0: by the rate
	toleranceSet bool
	timeout      time.Duration
	lease        time.Duration
	sharedHold   bool
	onChange     func(State)
	shaper       []shaper.Option

	now   func() time.Time // tests shift clocks
	epoch time.Time
}

// soon returns an instant at most d away, later than now: when to look again for what
// comes by itself. Asked again before it has come, it is the same one, so that a
// line that asks until all of its limits agree comes to an end.
func (c *config) soon(now time.Time, d time.Duration) time.Time {
	return now.Add(d - now.Sub(c.epoch)%d)
}

// WithHorizon sets how much of the schedule a process reserves at a time, at the most: what leaves
// within d at the rate, and at least one call. The default is 50 ms. Longer runs mean fewer
// steps, 1/d per second at full load, and a coarser order among processes. If d is shorter than
// two round trips, that is the horizon.
func WithHorizon(d time.Duration) Option { return func(c *config) { c.horizon = d } }

// WithTolerance sets the tolerance J: a slot that is unused J after its instant is let go. The
// default is 5 ms or a tenth of T, whichever is longer, and the least 1 ms: timers are that late.
func WithTolerance(j time.Duration) Option {
	return func(c *config) { c.tolerance, c.toleranceSet = j, true }
}

// WithTimeout sets how long one step may take. If it takes longer, Redis counts as away and the
// policy decides. The default is 100 ms. Where a round trip takes more than a fifth of that, it
// is five round trips, and at most five timeouts; to find the server may take ten timeouts at
// first.
func WithTimeout(d time.Duration) Option { return func(c *config) { c.timeout = d } }

// WithLease sets how long units of [NewSlidingLog] stay with a process that does not use
// them; it lengthens the window by as much, so that the quota is never exceeded. The
// default is 250 ms. It must be longer than a round trip.
func WithLease(d time.Duration) Option { return func(c *config) { c.lease = d } }

// WithSharedHold makes a hold of one process ([shaper.Shaper.HoldUntil]) hold all of
// them, within a horizon after Redis knows of it. Processes that do not have the option
// keep the holds of others as well, but learn of them with their next step only. A hold
// cannot be taken back: Resume lifts it in its own process, where the schedule holds on.
func WithSharedHold() Option { return func(c *config) { c.sharedHold = true } }

// WithOnChange has f called when Redis is found to be away, and when it is back: once
// for each change, one after the other. It must not block.
func WithOnChange(f func(State)) Option { return func(c *config) { c.onChange = f } }

// WithShaper sets options of a [NewGroup]: those that [shaper.NewGroup] takes as well, but
// [shaper.WithSchedules]. It is for [NewGroup] only.
func WithShaper(opts ...shaper.Option) Option {
	return func(c *config) { c.shaper = append(c.shaper, opts...) }
}

// reach returns how far ahead slots are reserved.
func (c *config) reach(l *link) time.Duration { return max(c.horizon, 2*l.roundTrip()) }

func configure(opts []Option) (*config, error) {
	c := &config{
		horizon: defaultHorizon, timeout: defaultTimeout, lease: defaultLease, now: time.Now, epoch: time.Now().Add(-24 * 365 * time.Hour),
	}
	for _, opt := range opts {
		opt(c)
	}
	for _, d := range []struct {
		name string
		is   time.Duration
		min  time.Duration
	}{
		{"horizon", c.horizon, time.Millisecond},
		{"tolerance", c.tolerance, 0},
		{"timeout", c.timeout, time.Millisecond},
		{"lease", c.lease, time.Millisecond},
	} {
		if d.is < d.min || d.is > time.Hour {
			return nil, fmt.Errorf("redis: %s %v: must be from %v to 1h", d.name, d.is, d.min)
		}
	}
	if c.toleranceSet && c.tolerance < time.Millisecond {
		return nil, fmt.Errorf("redis: tolerance %v: must be from 1ms to 1h", c.tolerance)
	}
	return c, nil
}
