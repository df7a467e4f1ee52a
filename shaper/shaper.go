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
	gcra       *scheduler.GCRA // the schedule, if that is all that there is to it
	saver      *scheduler.GCRA // the one of the limits that saves units up, if there is no other
	stock      *stock

	express express

	mu sync.Mutex // taken with lock and unlock
	// Guarded by mu:
	time     timeline
	sched    scheduler.Scheduler // all limits together
	pacer    scheduler.Scheduler // the one that SetRate changes
	full     scheduler.Rate      // as set; the pacer runs at a share of it
	share    share
	line     line
	refusals map[*call]error // of calls that waited and do not know yet
	nextDue  time.Time       // when the head was due, as of the latest look at it
	gate     gate
	places   places
	life     lifecycle
	counts   counts
	late     lateness
	debt     int64 // see fullLocked
	alarm    alarm
	laneOpen bool // calls may leave without the lock; see express
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
	return newShaper(pacer, c, newTimebase(c.clock, pacer.Tolerance()), &stock{timed: c.timed()}), nil
}

// NewFrom returns a Shaper that lets calls leave when the schedule says so. The
// Shaper owns it from then on; nobody else may use it. The schedule is called
// under the Shaper's lock, so it must not call back. One whose answers change by
// themselves has the line look again by its Notify method; see [scheduler.Scheduler].
//
// [WithBurst] and [WithTolerance] are matters of the schedule and an error here.
func NewFrom(s scheduler.Scheduler, opts ...Option) (*Shaper, error) {
	c, err := configure(opts)
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return nil, errors.New("shaper: schedule nil: must be a Scheduler")
	case c.burst != nil:
		return nil, fmt.Errorf("shaper: burst %d: NewFrom takes it from the schedule", *c.burst)
	case c.tolerance != nil:
		return nil, fmt.Errorf("shaper: tolerance %v: NewFrom takes it from the schedule", *c.tolerance)
	}
	if err := c.forGroups(); err != nil {
		return nil, err
	}
	return newShaper(s, c, newTimebase(c.clock, toleranceOf(s)), &stock{timed: c.timed()}), nil
}

func newShaper(pacer scheduler.Scheduler, c config, base timebase, stock *stock) *Shaper {
	s := &Shaper{
		capacity:   c.queue,
		maxDelay:   c.maxDelay,
		maxBacklog: c.maxBacklog,
		time:       timeline{timebase: base},
		sched:      pacer,
		pacer:      pacer,
		stock:      stock,
		share:      whole,
		debt:       1,
		places:     places{most: c.maxInFlight},
	}
	if rated, ok := pacer.(interface{ Rate() scheduler.Rate }); ok {
		s.full = rated.Rate()
	}
	if len(c.limits) > 0 {
		s.sched = scheduler.All(append([]scheduler.Scheduler{pacer}, c.limits...)...)
	}
	s.late.tolerance = toleranceOf(s.sched)
	s.gcra, _ = s.sched.(*scheduler.GCRA)
	s.saver = soleSaver(pacer, c.limits)
	s.alarm = c.newAlarm(s.dispatch)
	if changing, ok := s.sched.(interface{ Notify(again func()) }); ok {
		changing.Notify(s.dispatch)
	}
	s.lock()
	defer s.unlock() // opens the lane
	return s
}
