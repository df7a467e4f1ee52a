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
// and hours to a time zone instead.
//
// It counts at the instant at which a unit left, on the clock of its caller. A
// partner whose clock differs resets at another moment: keep away from the boundary
// if that matters. A Shaper's clock is what the wall clock showed when the Shaper
// was made, plus the time elapsed since on the monotonic clock, which stands still
// while a computer is suspended: where clocks are set or computers sleep, make a new
// Shaper, with the saved state, once in a while.
//
// Memory: two instants and one count per key. Its Next is exact for any ahead if
// those units come one by one.
//
// A quota for the day survives a crash if its state is saved while it is in use. Under a
// Shaper that is the Shaper's MarshalBinary, under its lock; nothing else may touch the
// FixedWindow then.
//
// FixedWindow is not safe for concurrent use.
type FixedWindow struct {
	limit  int64
	length time.Duration
	zone   *time.Location
	zoned  bool // by the clocks of zone, else by multiples of length

	end  time.Time // of the window of the latest departure
	used int64     // in that window
	seen time.Time
}

// A FixedWindowOption changes a [FixedWindow] that [NewFixedWindow] makes. A nil one is
// a programming error and panics.
type FixedWindowOption func(*FixedWindow)

// WithLocation aligns the windows to the clocks of a time zone: a window of 24 hours
// is a calendar day there, which lasts 23 or 25 hours when daylight saving time
// begins or ends; shorter windows must divide the hour and count from its full hours.
func WithLocation(zone *time.Location) FixedWindowOption {
	return func(f *FixedWindow) { f.zone, f.zoned = zone, true }
}

// NewFixedWindow returns a schedule of limit units per window. It refuses a limit
// below 1, a window that is not positive, and with [WithLocation] a window that is
// neither 24 hours nor a divisor of one hour.
func NewFixedWindow(limit int64, window time.Duration, opts ...FixedWindowOption) (*FixedWindow, error) {
	f := &FixedWindow{limit: limit, length: window}
	for _, opt := range opts {
		opt(f)
	}
	if err := checkWindow(limit, window); err != nil {
		return nil, err
	}
	if f.zoned {
		if err := f.checkZoned(); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *FixedWindow) checkZoned() error {
	switch {
	case f.zone == nil:
		return errors.New("scheduler: location nil: must be a time zone")
	case f.length != day && time.Hour%f.length != 0:
		return fmt.Errorf("scheduler: window %v in %v: must be 24h or divide one hour", f.length, f.zone)
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
	left = later(left, f.seen)
	f.seen = left
	if !left.Before(f.end) {
		_, f.end = f.bounds(left)
		f.used = 0
	}
	f.used = saturatingSum(f.used, max(n, 0))
}

// SetLimit changes the limit at once. What was used in the window stays used.
func (f *FixedWindow) SetLimit(now time.Time, limit int64) error {
	if err := checkWindow(limit, f.length); err != nil {
		return err
	}
	f.limit = limit
	return nil
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
	if !f.zoned || skip == 1 {
		return at
	}
	if f.length == day {
		// So many days later, by the calendar. Noon is in every day.
		y, m, d := end.In(f.zone).Date()
		return startOfDay(time.Date(y, m, d+int(skip-1), 12, 0, 0, 0, f.zone), f.zone)
	}
	start, _ := f.bounds(at)
	return start
}

// bounds returns the window [start, end) of t.
func (f *FixedWindow) bounds(t time.Time) (start, end time.Time) {
	switch {
	case !f.zoned:
		start = t.Truncate(f.length)
		return start, start.Add(f.length)
	case f.length == day:
		return startOfDay(t, f.zone), endOfDay(t, f.zone)
	}
	// Clocks of the zone differ from UTC by an offset; only its part of an hour
	// moves the windows.
	_, offset := t.In(f.zone).Zone()
	shift := time.Duration(offset) * time.Second
	start = t.Add(shift).Truncate(f.length).Add(-shift)
	return start, start.Add(f.length)
}

// startOfDay returns the first instant at which clocks in the zone show the date of
// t. That need not be midnight, as clocks may be set at midnight.
func startOfDay(t time.Time, zone *time.Location) time.Time {
	y, m, d := t.In(zone).Date()
	return firstOf(t, -50*time.Hour, func(at time.Time) bool { return !dateBefore(at, zone, y, m, d) })
}

// endOfDay returns the first instant at which they show a later date.
func endOfDay(t time.Time, zone *time.Location) time.Time {
	y, m, d := t.In(zone).Date()
	return firstOf(t.Add(50*time.Hour), -50*time.Hour, func(at time.Time) bool { return !dateBefore(at, zone, y, m, d+1) })
}

// firstOf searches the last span before t, at whose end ok holds, for the first
// whole second at which it does. Clocks are set at whole seconds.
func firstOf(t time.Time, span time.Duration, ok func(time.Time) bool) time.Time {
	hi := t.Unix()
	lo := t.Add(span).Unix() // does not hold
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; ok(time.Unix(mid, 0)) {
			hi = mid
		} else {
			lo = mid
		}
	}
	// Derived from t, to keep its monotonic reading.
	return t.Add(time.Unix(hi, 0).Sub(t))
}

// dateBefore reports whether clocks in the zone show a date before y-m-d at t.
func dateBefore(t time.Time, zone *time.Location, y int, m time.Month, d int) bool {
	ty, tm, td := t.In(zone).Date()
	return time.Date(ty, tm, td, 0, 0, 0, 0, time.UTC).Before(time.Date(y, m, d, 0, 0, 0, 0, time.UTC))
}
