package shaper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/sluice-go/sluice/scheduler"
)

// A Shaper makes callers wait their turn. Each call leaves at the earliest instant
// that the limits allow, in the order of arrival, and never earlier; a call that
// cannot be served is told at once. See the package documentation for the
// promises. Start with [New] and [Shaper.Wait].
//
// All methods are safe for concurrent use. An idle Shaper has no goroutine and no
// armed timer, so it need not be closed.
type Shaper struct {
	line line
	own  flow // of its own calls
}

// New returns a Shaper that paces at the rate. Its defaults are a burst of 1, a
// tolerance of 5 ms and room for 1024 waiting calls.
//
// An invalid rate or option is an error that names the value.
func New(r scheduler.Rate, opts ...Option) (*Shaper, error) {
	c, err := configure(opts)
	if err != nil {
		return nil, err
	}
	if err := c.forGroups(); err != nil {
		return nil, err
	}
	pacer, err := c.pacer(r)
	if err != nil {
		return nil, err
	}
	return newShaper(pacer, c, newTimebase(c.clock, pacer.Tolerance()), &callPool{timed: c.timed()}), nil
}

// NewFrom returns a Shaper that lets calls leave when the schedule says so: one of package
// scheduler, fresh or loaded, or of your own. The Shaper owns it from then on. It must not be
// touched any more, not even to read or to save it, and be given to no other Shaper, also
// not within [scheduler.All] or by [WithLimits]: it is called under the Shaper's lock alone.
// To save it use [Shaper.MarshalBinary], and to change its rate [Shaper.SetRate]. It must
// not call back. One whose answers change by themselves has the line look again by its
// Notify method; see [scheduler.Notifier]. One that has to know what waits is told
// ([scheduler.Demander]), one that lets nothing leave for now has calls refused
// ([scheduler.Refuser]), and one that has a Close method is closed with the Shaper.
//
// [WithBurst] and [WithTolerance] are matters of the schedule and an error here. So is a
// schedule whose MaxCost is below 1, such as a zero value.
func NewFrom(s scheduler.Scheduler, opts ...Option) (*Shaper, error) {
	c, err := configure(opts)
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return nil, errors.New("shaper: schedule nil: must be a Scheduler")
	case s.MaxCost() < 1:
		return nil, errUnusable("schedule", s)
	case c.burst != nil:
		return nil, fmt.Errorf("shaper: burst %d: NewFrom takes it from the schedule", *c.burst)
	case c.tolerance != nil:
		return nil, fmt.Errorf("shaper: tolerance %v: NewFrom takes it from the schedule", *c.tolerance)
	}
	if err := c.forGroups(); err != nil {
		return nil, err
	}
	return newShaper(s, c, newTimebase(c.clock, toleranceOf(s)), &callPool{timed: c.timed()}), nil
}

// errUnusable is for a schedule that could never let anything leave.
func errUnusable(what string, s scheduler.Scheduler) error {
	return fmt.Errorf("shaper: %s %T: its MaxCost is %d: is it a zero value?", what, s, s.MaxCost())
}

func newShaper(pacer scheduler.Scheduler, c config, base timebase, pool *callPool) *Shaper {
	s := new(Shaper)
	s.line.init(&s.own, newLimits(pacer, c.limits, c.maxInFlight), c, base, pool)
	return s
}

// Allow reports whether a call of one unit may leave now. If so, it has left. It
// never waits and never overtakes a call that does.
func (s *Shaper) Allow() bool { return s.AllowN(1) }

// AllowN is [Shaper.Allow] for a call of the given cost in units.
func (s *Shaper) AllowN(cost int) bool {
	read := s.line.time.since()
	return s.line.fast.leave(read, int64(cost)) || s.own.allow(read, ask{cost: int64(cost)})
}

func (f *flow) allow(read time.Duration, a ask) bool {
	l := f.lock()
	defer l.unlock()
	f.countLocked(submitted, 0)
	if f.admissibleLocked(a.cost) == nil {
		now := l.arriveLocked(read)
		f.weighLocked(a.weight)
		if f.leaveLocked(now, a) {
			return true
		}
	}
	f.countLocked(refused, 0)
	return false
}

// LeaveNow reports whether a call of the given cost has left at once. A no counts as
// nothing and means only that [Shaper.WaitN] has to be asked: unlike [Shaper.AllowN],
// LeaveNow says yes only where no lock is needed for it. It is for callers that do
// something before they wait, such as looking at the clock.
func (s *Shaper) LeaveNow(cost int) bool {
	if s.line.fast.leave(s.line.time.since(), int64(cost)) {
		return true
	}
	s.made()
	return false
}

// Do waits as [Shaper.Wait] does and then runs f, which counts as in flight until
// it returns; see [WithMaxInFlight]. It returns the error of either.
func (s *Shaper) Do(ctx context.Context, f func(context.Context) error) error {
	if err := s.Acquire(ctx, 1); err != nil {
		return err
	}
	defer s.Release()
	return f(ctx)
}

// Delay returns what a newcomer of one unit would wait now, holds included. While
// paused, which may end at any time, it is the wait if the pause ended now. Where keys of a
// Group are under the Shaper, their calls are left out: it is the least wait.
func (s *Shaper) Delay() time.Duration { return s.DelayOf(Call{Class: maxClasses}) }

// Clock returns the clock that the Shaper lives by: that of [WithClock], or the system's.
func (s *Shaper) Clock() clock.Clock {
	s.made()
	if m, ok := s.line.time.clock.(*monotonic); ok {
		return m.Clock
	}
	return clock.New()
}

// DelayOf is [Shaper.Delay] for a call of the given cost and class.
func (s *Shaper) DelayOf(c Call) time.Duration { return s.own.delay(c.ask(s.own.rule())) }

func (f *flow) delay(a ask) time.Duration {
	l := f.lock()
	defer l.unlock()
	now := l.arriveLocked(l.time.since())
	return f.foreseeLocked(now, f.calls.ahead(a.class, l.arrivalLocked(now, a.arrived)), a.cost).Sub(now)
}
