package scheduler

import (
	"errors"
	"fmt"
	"math/bits"
	"time"
)

// FixedWindow lets up to limit units leave in each window, and windows follow the
// partner's clock: a minute begins at second 0, a day at midnight.
//
// Use it for a quota that is counted like that: "10,000 per calendar day". Do not
// use it to be gentle: a whole quota may leave at once, and twice the limit within
// moments around a boundary. That is its worst burst: 2·limit in a closed window of
// any length up to one window.
//
// Windows count whole multiples of their length since midnight UTC at the beginning
// of the Gregorian calendar, so a week begins on Monday. [WithLocation] aligns days
// and hours to a time zone instead, and [WithDayStart] has days begin at another time
// than midnight.
//
// It counts at the instant at which a unit left, on the clock of its caller. A
// partner whose clock differs resets at another moment: keep away from the boundary
// if that matters. A Shaper's clock is what the wall clock showed when the Shaper
// was made, plus the time elapsed since on the monotonic clock, which stands still
// while a computer is suspended: where clocks are set or computers sleep, make a new
// Shaper, with the saved state, once in a while.
//
// A quota of a day outlives a crash only if it was saved before: a schedule that is used
// alone by MarshalBinary after each Commit, and one in a Shaper by the Shaper's
// MarshalBinary. Units that have left since the last saving may leave once more.
//
// Memory: two instants and one count per key. Its Next is exact for any ahead if
// those units come one by one; a day that clocks skip whole counts as one.
//
// FixedWindow is not safe for concurrent use.
type FixedWindow struct {
	limit  int64
	length time.Duration
	// zone is that of the clocks which windows follow. If it is nil, windows are multiples
	// of length.
	zone     *time.Location
	dayStart time.Duration // what they show when a day begins

	end  time.Time // of the window of the latest departure
	used int64     // in that window
	seen time.Time

	unsettled windowCalls
}

// A FixedWindowOption changes a [FixedWindow] that [NewFixedWindow] makes. A nil one is
// a programming error and panics.
type FixedWindowOption func(*windowConfig)

// WithLocation aligns the windows to the clocks of a time zone. A window of 24 hours is
// a calendar day there, which lasts 23 or 25 hours when daylight saving time begins or
// ends, one of several days is as many of those, and weeks begin on Monday. Shorter
// windows must divide the hour and count from its full hours.
func WithLocation(zone *time.Location) FixedWindowOption {
	return func(c *windowConfig) { c.zone, c.zoned = zone, true }
}

// WithDayStart has days begin when clocks show d, a time since midnight, in place of
// midnight: the quota of a partner whose day begins at 05:00. Clocks are those of
// [WithLocation], or show UTC. Where clocks skip d, the day begins when they are set
// forward, and where they show it twice, at the first time.
func WithDayStart(d time.Duration) FixedWindowOption {
	return func(c *windowConfig) { c.dayStart = &d }
}

// windowConfig is what options state.
type windowConfig struct {
	zone     *time.Location
	zoned    bool
	dayStart *time.Duration // nil: midnight
}

// NewFixedWindow returns a schedule of limit units per window. It refuses a limit
// below 1, a window that is not positive, with [WithLocation] a window that is neither a
// whole number of days nor a divisor of one hour, and with [WithDayStart] a window that
// is no whole number of days and a start that is not from 0 to below 24 hours.
func NewFixedWindow(limit int64, window time.Duration, opts ...FixedWindowOption) (*FixedWindow, error) {
	var c windowConfig
	for _, opt := range opts {
		opt(&c)
	}
	if err := checkWindow(limit, window); err != nil {
		return nil, err
	}
	if c.zoned && c.zone == nil {
		return nil, errors.New("scheduler: location nil: must be a time zone")
	}
	f := &FixedWindow{limit: limit, length: window, zone: c.zone}
	if c.dayStart != nil {
		if f.dayStart = *c.dayStart; f.days() == 0 {
			return nil, fmt.Errorf("scheduler: day start %v with window %v: must be a whole number of days", f.dayStart, window)
		}
		if f.zone == nil {
			f.zone = time.UTC
		}
	}
	if err := f.checkCalendar(); err != nil {
		return nil, err
	}
	return f, nil
}

// checkCalendar returns an error if windows cannot follow the clocks of the zone.
func (f *FixedWindow) checkCalendar() error {
	switch {
	case f.zone != nil && f.days() == 0 && time.Hour%f.length != 0:
		return fmt.Errorf("scheduler: window %v in %v: must be whole days or divide one hour", f.length, f.zone)
	case f.dayStart < 0 || f.dayStart >= day:
		return fmt.Errorf("scheduler: day start %v: must be from 0 to below 24h", f.dayStart)
	case f.dayStart != 0 && (f.zone == nil || f.days() == 0):
		return fmt.Errorf("scheduler: day start %v with window %v: must be a whole number of days", f.dayStart, f.length)
	}
	return nil
}

func checkWindow(limit int64, window time.Duration) error {
	switch {
	case limit < 1:
		return fmt.Errorf("scheduler: limit %d: must be at least 1", limit)
	case window <= 0:
		return fmt.Errorf("scheduler: window %v: must be positive", window)
	}
	return nil
}

// MaxCost returns the limit.
func (f *FixedWindow) MaxCost() int64 { return f.limit }

// Next implements [Scheduler].
func (f *FixedWindow) Next(t time.Time, ahead, n int64) time.Time {
	mustBeMade(f.limit > 0, "FixedWindow")
	t = later(t, f.seen)
	ahead, n = max(ahead, 0), max(n, 1)
	if n > f.limit {
		return t.Add(never)
	}
	end, used := f.at(t)
	// The units ahead fill one window after the other.
	taken := saturatingSum(min(used, f.limit), ahead)
	skip := taken / f.limit
	if taken%f.limit > f.limit-n {
		skip++ // no room for n beside them
	}
	if skip == 0 {
		return t
	}
	return f.after(t, end, skip)
}

// Commit implements [Scheduler]. It counts at left.
func (f *FixedWindow) Commit(due, left time.Time, n int64) {
	mustBeMade(f.limit > 0, "FixedWindow")
	f.reach(later(left, f.seen))
	f.used = saturatingSum(f.used, max(n, 0))
}

// SetLimit changes the limit at once. What was used in the window stays used.
func (f *FixedWindow) SetLimit(now time.Time, limit int64) error {
	mustBeMade(f.limit > 0, "FixedWindow")
	if err := checkWindow(limit, f.length); err != nil {
		return err
	}
	f.limit = limit
	return nil
}

// reach moves on to the window of t.
func (f *FixedWindow) reach(t time.Time) {
	f.seen = t
	if !t.Before(f.end) {
		_, f.end = f.bounds(t)
		f.used = 0
	}
}

// at returns when the window of t ends, and how much of it is used.
func (f *FixedWindow) at(t time.Time) (end time.Time, used int64) {
	if t.Before(f.end) {
		return f.end, f.used
	}
	_, end = f.bounds(t)
	return end, 0
}

// after returns when the window begins that is skip windows after the one that ends
// at end.
func (f *FixedWindow) after(t, end time.Time, skip int64) time.Time {
	hi, lo := bits.Mul64(uint64(skip-1), uint64(f.length))
	if hi > 0 || lo >= uint64(never) {
		return t.Add(never)
	}
	at := cut(t, end.Add(time.Duration(lo)))
	switch {
	case f.zone == nil || skip == 1:
		return at
	case f.days() > 0:
		return cut(t, alike(t, f.startOf(f.numberAt(end)+skip-1)))
	}
	start, _ := f.bounds(at)
	return start
}

// bounds returns the window [start, end) of t.
func (f *FixedWindow) bounds(t time.Time) (start, end time.Time) {
	switch {
	case f.zone == nil:
		start = t.Truncate(f.length)
		return start, start.Add(f.length)
	case f.days() > 0:
		number := f.numberAt(t)
		return alike(t, f.startOf(number)), alike(t, f.startOf(number+1))
	}
	// Clocks of the zone differ from UTC by an offset; only its part of an hour
	// moves the windows.
	_, offset := t.In(f.zone).Zone()
	shift := time.Duration(offset) * time.Second
	start = t.Add(shift).Truncate(f.length).Add(-shift)
	return start, start.Add(f.length)
}

// days returns how many days a window lasts, or 0 if that is no whole number.
func (f *FixedWindow) days() int64 {
	if f.length%day != 0 {
		return 0
	}
	return int64(f.length / day)
}

// startOf returns when a window of whole days begins: as soon as clocks show its first
// day and the start of the day, or more if they skip that.
func (f *FixedWindow) startOf(number int64) time.Time {
	return firstReaching(reading{number * f.days(), f.dayStart}, f.zone)
}

// numberAt returns the number of the window of whole days that t lies in.
func (f *FixedWindow) numberAt(t time.Time) int64 {
	shown := readingAt(t, f.zone)
	if shown.clock < f.dayStart {
		shown.days--
	}
	number := floorDiv(shown.days, f.days())
	// The next one has begun already if clocks were set back behind its beginning. One
	// that they have skipped has no time of its own.
	for !f.startOf(number + 1).After(t) {
		number++
	}
	return number
}
