package shaper

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper/internal/precise"
)

const (
	defaultBurst     = 1
	defaultTolerance = 5 * time.Millisecond
	defaultQueue     = 1024

	// never is what a schedule answers for a call that can never leave, or so late that no
	// Duration can tell.
	never = time.Duration(math.MaxInt64)
)

// An Option changes what [New] and [NewFrom] make. A nil Option is a programming error
// and panics.
type Option func(*config)

type config struct {
	burst     *int
	tolerance *time.Duration
	bounds
	queueSet    bool
	maxInFlight int64
	inFlightSet bool
	ofAll       *int // in flight, of all keys
	roomOfAll   *int // for calls that wait, of all keys
	limits      []scheduler.Scheduler
	clock       clock.Clock
	clockSet    bool

	precise bool // as asked for; after configure, as can be had
	timing  bool // precise timing was asked for
	grain   *time.Duration

	maxKeys     *int
	rates       any // func(K) scheduler.Rate
	limitOf     any // func(K) (scheduler.Scheduler, error)
	limitsTwice bool
	weights     any // func(K) int

	twice string // an option that was given more than once

	under    *Shaper
	underSet bool

	unsettled *settling

	classes  *int
	overtake time.Duration
	rule     *classRule // of a Group
}

// WithBurst sets how many units may leave back to back after an idle spell. The
// default is 1: even spacing. Mind that a burst comes on top of the rate: 12 per
// second with a burst of 12 lets 23 units leave within the first second, 24 in the
// second that is closed at both ends. It is for [New] only.
func WithBurst(n int) Option { return func(c *config) { c.burst = &n } }

// WithTolerance sets the tolerance J: how late a call may leave, because a timer
// was late, without the schedule moving. The default is 5 ms; 0 is strict, at the
// price of a lower rate with real timers. It is for [New] only.
func WithTolerance(j time.Duration) Option { return func(c *config) { c.tolerance = &j } }

// WithQueue sets how many calls may wait, whatever they cost. Where a rate is the only
// limit, what calls that have left still owe beyond the burst counts, too, as so many calls
// of the cost of the latest one: so a burst of calls on an idle Shaper with WithQueue(c)
// and the default burst admits c of them, the one that leaves at once included. The
// default is 1024. To bound the wait, use [WithMaxDelay] or [WithMaxBacklog].
func WithQueue(capacity int) Option {
	return func(c *config) { c.capacity, c.queueSet = capacity, true }
}

// WithMaxDelay refuses calls that would wait longer than d. The default is no
// bound but the one of [WithQueue]. With 0 only calls that need not wait pass.
func WithMaxDelay(d time.Duration) Option { return func(c *config) { c.maxDelay = d } }

// WithMaxBacklog refuses calls, with [ErrQueueFull], that would wait longer than d for
// the units of the limits alone: a hold or a pause does not count, as it does not mean
// that too much was asked for. The default is no bound but the one of [WithQueue], and
// that a call is refused which can never leave.
func WithMaxBacklog(d time.Duration) Option { return func(c *config) { c.maxBacklog = d } }

// WithMaxInFlight bounds how many calls of [Shaper.Acquire] and [Shaper.Do], which are those
// of a transport and of a queue, are in flight at a time. The next one leaves when the pace
// allows it and one of them has been released. The default is no bound. A call of Wait takes no
// place: it does not tell when it has ended.
func WithMaxInFlight(n int) Option {
	return func(c *config) { c.maxInFlight, c.inFlightSet = int64(n), true }
}

// WithMaxInFlightOfAll bounds how many calls of all keys of a [Group] together are in flight at a
// time, beside [WithMaxInFlight], which bounds each, and that of the account. A key whose call
// waits for such a place is in no other Group's way. It is for [NewGroup] with [Under] only.
func WithMaxInFlightOfAll(n int) Option {
	return func(c *config) {
		c.once("in flight of all keys", c.ofAll != nil)
		c.ofAll = &n
	}
}

// WithQueueOfAll gives the keys of a [Group] room of their own: n calls of all keys together may
// wait, beside those that may by the account's [WithQueue]. They take none of that room, and are
// refused for want of it neither on arrival nor later. [WithQueue] bounds each key besides. It is
// for [NewGroup] with [Under] only.
func WithQueueOfAll(n int) Option {
	return func(c *config) {
		c.once("queue of all keys", c.roomOfAll != nil)
		c.roomOfAll = &n
	}
}

// once notes that an option was given before that must not be overridden, as a part of the program
// counts on what it has set.
func (c *config) once(what string, before bool) {
	if before {
		c.twice = what
	}
}

// WithLimits adds limits that hold beside the rate: a call leaves when all of them
// allow it, and each is charged what really left. The Shaper owns them from then
// on; they may not be used elsewhere. [Shaper.SetRate] does not touch them.
func WithLimits(more ...scheduler.Scheduler) Option {
	return func(c *config) { c.limits = append(c.limits, more...) }
}

// WithClock makes the Shaper live by a clock of its user, such as
// [clock.NewMock], in place of the system's. Deadlines of contexts are read on
// that clock, too: make them with its WithTimeout. A step back that is shorter than the
// tolerance (5 ms where that is 0) holds the calls until the clock has caught up, so a
// clock whose readings differ by less lets none leave early. A longer one counts as no
// time passed.
//
// Tests that run in a [testing/synctest] bubble need no such clock.
func WithClock(cl clock.Clock) Option {
	return func(c *config) { c.clock, c.clockSet = cl, true }
}

// WithPreciseTiming has calls leave within tens of microseconds of their due time, where
// timers of the runtime are up to a millisecond late. It is for high rates and for
// partners that look at each gap, and costs CPU time above some thousand departures per
// second; see [WithGrain]. The order, the schedule and all promises are the same.
//
// It works on Linux, by a timerfd that the runtime's poller watches, one for the process;
// a goroutine that all Shapers share exists while a call waits, and for a moment after.
// Elsewhere, where the kernel has no timerfd for the process, with [WithClock], and for
// what is made in a [testing/synctest] bubble, timers are used as without the option. On a
// machine whose cores are all busy no release is precise. A schedule of one's own
// ([NewFrom], [WithLimits]) is asked on that goroutine, so a slow one makes others late.
func WithPreciseTiming() Option { return func(c *config) { c.precise = true } }

// WithGrain bounds what [WithPreciseTiming] costs: two releases are at least d apart, and
// calls that are due in between leave together, late by up to d and never early. A grain
// above the tolerance lowers the rate. The default is 0, no bound.
func WithGrain(d time.Duration) Option { return func(c *config) { c.grain = &d } }

// WithMaxKeys sets how many keys a [Group] remembers. The default is 100,000. It is for
// [NewGroup] only.
func WithMaxKeys(n int) Option { return func(c *config) { c.maxKeys = &n } }

// WithRates gives each key of a [Group] a rate of its own: what f returns for it. K is
// the type of the keys. It is for [NewGroup] only.
//
// f is called without a lock, on the goroutine of a call, when a key is made; that may be
// again when it has been forgotten, and to find out whether it can be. It must be safe for
// concurrent use. An invalid rate is the error of the call that needed the key. If f comes
// to say something else, [Group.Refresh] and [Group.SetRates] make it so for keys that
// are remembered.
func WithRates[K comparable](f func(key K) scheduler.Rate) Option {
	return func(c *config) { c.rates = f }
}

// WithSchedules gives each key of a [Group] a limit of its own beside the rate: the
// schedule that f returns for it, such as 10,000 a day by the calendar, or several by
// [scheduler.All]. With [scheduler.Unlimited] for a rate it is the only one. A call leaves
// when the rate and the schedule allow it. K is the type of the keys. It is for [NewGroup]
// only.
//
// f is called without a lock, on the goroutine of a call, when a key is made; that may be
// again when it has been forgotten. It must be safe for concurrent use and return a fresh
// schedule each time, which belongs to the Group from then on. Its error is the reason for
// which the call is refused that needed the key.
//
// Such a key costs a Shaper until its schedule is as good as new, of which
// [scheduler.Forgettable] tells. One that does not tell it is remembered for good, and
// counts for [WithMaxKeys].
func WithSchedules[K comparable](f func(key K) (scheduler.Scheduler, error)) Option {
	return func(c *config) { c.limitOf, c.limitsTwice = f, c.limitsTwice || c.limitOf != nil }
}

func configure(opts []Option) (config, error) {
	c := config{bounds: bounds{capacity: defaultQueue, maxDelay: never, maxBacklog: never}}
	for _, opt := range opts {
		opt(&c)
	}
	switch {
	case c.twice != "":
		return c, fmt.Errorf("shaper: %s: given twice", c.twice)
	case c.capacity < 1:
		return c, fmt.Errorf("shaper: queue %d: must be at least 1", c.capacity)
	case c.inFlightSet && c.maxInFlight < 1:
		return c, fmt.Errorf("shaper: %d in flight: must be at least 1", c.maxInFlight)
	case c.ofAll != nil && *c.ofAll < 1:
		return c, fmt.Errorf("shaper: %d in flight of all keys: must be at least 1", *c.ofAll)
	case c.ofAll != nil && !c.underSet:
		return c, fmt.Errorf("shaper: %d in flight of all keys: needs Under", *c.ofAll)
	case c.roomOfAll != nil && *c.roomOfAll < 1:
		return c, fmt.Errorf("shaper: queue %d of all keys: must be at least 1", *c.roomOfAll)
	case c.roomOfAll != nil && !c.underSet:
		return c, fmt.Errorf("shaper: queue %d of all keys: needs Under", *c.roomOfAll)
	case c.grain != nil && *c.grain < 0:
		return c, fmt.Errorf("shaper: grain %v: must not be negative", *c.grain)
	case c.grain != nil && !c.precise:
		return c, fmt.Errorf("shaper: grain %v: needs WithPreciseTiming", *c.grain)
	case c.maxKeys != nil && *c.maxKeys < 1:
		return c, fmt.Errorf("shaper: maximum of %d keys: must be at least 1", *c.maxKeys)
	case c.limitsTwice:
		return c, errors.New("shaper: schedules by key: stated twice; scheduler.All makes one of several")
	case c.maxDelay < 0:
		return c, fmt.Errorf("shaper: maximum delay %v: must not be negative", c.maxDelay)
	case c.maxBacklog < 0:
		return c, fmt.Errorf("shaper: maximum backlog %v: must not be negative", c.maxBacklog)
	case c.clockSet && c.clock == nil:
		return c, errors.New("shaper: clock nil: must be a clock")
	}
	if err := c.checkClasses(); err != nil {
		return c, err
	}
	if err := c.checkUnsettled(); err != nil {
		return c, err
	}
	for i, limit := range c.limits {
		if limit == nil {
			return c, fmt.Errorf("shaper: limit %d is nil: must be a Scheduler", i)
		}
		if limit.MaxCost() < 1 {
			return c, errUnusable(fmt.Sprintf("limit %d, a", i), limit)
		}
	}
	c.timing = c.precise
	c.precise = c.precise && c.clock == nil && preciseAvailable()
	return c, nil
}

// forGroups returns an error if something is set that only a Group has.
func (c *config) forGroups() error {
	switch {
	case c.maxKeys != nil:
		return fmt.Errorf("shaper: maximum of %d keys: only a Group has keys", *c.maxKeys)
	case c.rates != nil:
		return errors.New("shaper: rates by key: only a Group has keys")
	case c.limitOf != nil:
		return errors.New("shaper: schedules by key: only a Group has keys")
	case c.weights != nil:
		return errors.New("shaper: weights by key: only a Group has keys")
	case c.underSet:
		return errors.New("shaper: under a Shaper: only a Group can be")
	}
	return nil
}

// pacer returns a schedule for the rate.
func (c *config) pacer(r scheduler.Rate) (*scheduler.GCRA, error) {
	burst, tolerance := defaultBurst, defaultTolerance
	if c.burst != nil {
		burst = *c.burst
	}
	if c.tolerance != nil {
		tolerance = *c.tolerance
	}
	pacer, err := scheduler.NewGCRA(r, int64(burst), scheduler.WithTolerance(tolerance))
	if err != nil {
		return nil, fmt.Errorf("shaper: %w", err)
	}
	return pacer, nil
}

// preciseAvailable is a variable for tests, which try precise timing on the time of a
// bubble.
var preciseAvailable = precise.Available
