package shaper

import (
	"errors"
	"fmt"
	"sync"
	"time"

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
	capacity   int
	maxDelay   time.Duration
	maxBacklog time.Duration
	gcra       *scheduler.GCRA       // the schedule, if that is all that there is to it
	limits     []scheduler.Scheduler // those beside the pacer
	pool       *callPool

	fast fastPath

	mu sync.Mutex // taken with lock and unlock
	// Guarded by mu:
	time     timeline
	sched    scheduler.Scheduler // all limits together
	pacer    scheduler.Scheduler // the one that SetRate changes
	pacing   *scheduler.GCRA     // the same, if it is one
	base     scheduler.Rate      // that the Shaper was made with
	full     scheduler.Rate      // as set; the pacer runs at a share of it
	share    share
	line     line
	refusals map[*call]error // of calls that waited and do not know yet
	nextDue  time.Time       // when the head is due, unless it waits for no instant
	putOff   int             // how often one was not, when that had come, since a call left
	gate     gate
	places   places
	life     lifecycle
	counts   counts
	late     lateness
	unused   unused
	debt     int64 // see fullLocked
	alarm    alarm
	wordOpen bool // calls may leave without the lock; see fastPath
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
// Notify method; see [scheduler.Notifier].
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
	s := &Shaper{
		capacity:   c.queue,
		maxDelay:   c.maxDelay,
		maxBacklog: c.maxBacklog,
		time:       timeline{timebase: base},
		sched:      pacer,
		pacer:      pacer,
		limits:     c.limits,
		pool:       pool,
		share:      whole,
		debt:       1,
		line:       c.newLine(),
		places:     places{most: c.maxInFlight},
	}
	s.base = rateOf(pacer)
	s.full = s.base
	if len(c.limits) > 0 {
		s.sched = scheduler.All(append([]scheduler.Scheduler{pacer}, c.limits...)...)
	}
	s.late.tolerance = toleranceOf(s.sched)
	s.gcra, _ = s.sched.(*scheduler.GCRA)
	s.pacing, _ = pacer.(*scheduler.GCRA)
	s.unused.until = base.epoch
	s.alarm = c.newAlarm(s.dispatch)
	if changing, ok := s.sched.(scheduler.Notifier); ok {
		changing.Notify(s.dispatch)
	}
	s.lock()
	defer s.unlock() // opens the fast path
	return s
}
