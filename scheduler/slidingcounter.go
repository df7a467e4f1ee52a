package scheduler

import (
	"math/bits"
	"time"
)

// SlidingCounter estimates how many units left within the latest window from two
// counts: those of the current window, and those of the one before it, weighed by
// how much of it the sliding window still covers. With a fraction p of the current
// window gone, n units may leave if
//
//	previous·(1-p) + current + n <= limit
//
// The comparison is exact, in integers, and rounds against the caller.
//
// Use it for a partner that counts like that, as many gateways do, or where a
// [SlidingLog] takes too much memory. It assumes that the units of the previous
// window were spread evenly; if they came late in it, more than limit may fall into
// one window: up to about twice the limit for the most hostile arrivals, and far
// less for real ones. A saturated caller gets limit - 1 units per window, and one in
// two windows if the limit is 1.
//
// Windows count whole multiples of their length, as those of a [FixedWindow] do.
// Worst burst: limit units at once. Memory: two counts and two instants per key. Its
// Next is a lower bound for ahead > 0 that goes beyond the current window.
//
// SlidingCounter is not safe for concurrent use.
type SlidingCounter struct {
	limit  int64
	window time.Duration

	start             time.Time // of the current window
	previous, current int64
	seen              time.Time

	unsettled windowCalls
}

// NewSlidingCounter returns a schedule of limit units in about any window. It
// refuses a limit below 1 and a window that is not positive.
func NewSlidingCounter(limit int64, window time.Duration) (*SlidingCounter, error) {
	if err := checkWindow(limit, window); err != nil {
		return nil, err
	}
	return &SlidingCounter{limit: limit, window: window}, nil
}

// MaxCost returns the limit.
func (c *SlidingCounter) MaxCost() int64 { return c.limit }

// Next implements [Scheduler].
func (c *SlidingCounter) Next(t time.Time, ahead, n int64) time.Time {
	mustBeMade(c.limit > 0, "SlidingCounter")
	t = later(t, c.seen)
	ahead, n = max(ahead, 0), max(n, 1)
	if n > c.limit {
		return t.Add(never)
	}
	start, previous, current := c.at(t)
	if at, ok := c.fits(t, start, previous, saturatingSum(saturatingSum(current, ahead), n)); ok {
		return at
	}
	// Alone, the n units leave in the next window or at the start of the one after.
	next := start.Add(c.window)
	at, ok := c.fits(next, next, current, n)
	if !ok {
		at = next.Add(c.window)
	}
	if ahead == 0 {
		return at
	}
	// Those ahead take what is left of this window, and at most limit of each one
	// after it.
	beyond := max(1, saturatingSum(ahead, n)-max(0, c.limit-current))
	hi, lo := bits.Mul64(uint64((beyond-1)/c.limit), uint64(c.window))
	if hi > 0 || lo >= uint64(never) {
		return t.Add(never)
	}
	return cut(t, later(at, next.Add(time.Duration(lo))))
}

// fits returns the earliest instant of the window that begins at start, not before
// t, at which total units of it fit under the limit beside those of the previous
// one.
func (c *SlidingCounter) fits(t, start time.Time, previous, total int64) (time.Time, bool) {
	room := c.limit - total
	switch {
	case room < 0:
		return t, false
	case previous == 0:
		return t, true
	}
	// previous·(window - e) <= room·window, for e since the start: e is at least
	// window - floor(room·window / previous).
	hi, lo := bits.Mul64(uint64(room), uint64(c.window))
	if hi >= uint64(previous) {
		return t, true
	}
	covered, _ := bits.Div64(hi, lo, uint64(previous))
	if covered == 0 {
		return t, false // not before the window ends
	}
	if covered >= uint64(c.window) {
		return t, true
	}
	return later(t, start.Add(c.window-time.Duration(covered))), true
}

// Commit implements [Scheduler]. It counts at left.
func (c *SlidingCounter) Commit(due, left time.Time, n int64) {
	mustBeMade(c.limit > 0, "SlidingCounter")
	left = later(left, c.seen)
	c.seen = left
	c.start, c.previous, c.current = c.at(left)
	c.current = saturatingSum(c.current, max(n, 0))
}

// SetLimit changes the limit at once. The counts stay as they are.
func (c *SlidingCounter) SetLimit(now time.Time, limit int64) error {
	mustBeMade(c.limit > 0, "SlidingCounter")
	if err := checkWindow(limit, c.window); err != nil {
		return err
	}
	c.limit = limit
	return nil
}

// at returns the start of the window of t and the counts as they stand at t.
func (c *SlidingCounter) at(t time.Time) (start time.Time, previous, current int64) {
	start = t.Truncate(c.window)
	switch {
	case !start.After(c.start):
		return c.start, c.previous, c.current
	case start.Sub(c.start) == c.window:
		return start, c.current, 0
	}
	return start, 0, 0
}
