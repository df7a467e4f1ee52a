package scheduler

import (
	"math/bits"
	"slices"
	"time"
)

// SlidingLog lets up to limit units leave in any half-open window, wherever it
// begins: of limit+1 units in a row the last leaves at least one window after the
// first. It is exact, and uses all that the partner allows.
//
// Use it for "no more than 1,000 in any 60 seconds". When the limit is high and even
// spacing will do, [Within] does it with one instant in place of a log.
//
// Worst burst: limit units at once. Memory: 8 bytes for each of the latest limit
// units, from the first one on. A decision is one look-up, whatever the limit; a
// departure writes one entry per unit. Its Next is exact for any ahead if those
// units come one by one.
//
// SlidingLog is not safe for concurrent use.
type SlidingLog struct {
	limit  int64
	window time.Duration

	// ring holds when the latest units left, in ns since epoch, as a ring that
	// begins at first once it is full. It grows up to limit, and is longer for a
	// while when the limit was lowered.
	ring  []int64
	first int
	epoch time.Time
	seen  time.Time
}

// NewSlidingLog returns a schedule of limit units in any window. It refuses a limit
// below 1 and a window that is not positive.
func NewSlidingLog(limit int64, window time.Duration) (*SlidingLog, error) {
	if err := checkWindow(limit, window); err != nil {
		return nil, err
	}
	return &SlidingLog{limit: limit, window: window}, nil
}

// MaxCost returns the limit.
func (l *SlidingLog) MaxCost() int64 { return l.limit }

// Next implements [Scheduler].
func (l *SlidingLog) Next(t time.Time, ahead, n int64) time.Time {
	mustBeMade(l.limit > 0, "SlidingLog")
	t = later(t, l.seen)
	ahead, n = max(ahead, 0), max(n, 1)
	if n > l.limit {
		return t.Add(never)
	}
	// The last of the n units must leave a window after the unit that is limit
	// places before it. If that one is ahead itself, the same holds for it, and so
	// on: laps windows after a unit in the log, or after t if there is none.
	total := saturatingSum(ahead, n) // from the next unit on
	laps := (total - 1) / l.limit
	place := total - laps*l.limit // from 1 to limit: in the log, that many from the oldest
	at := t
	if spare := l.limit - int64(len(l.ring)); place > spare {
		at = later(t, l.entry(int(place-spare-1)).Add(l.window))
	}
	if laps == 0 {
		return at
	}
	hi, lo := bits.Mul64(uint64(laps), uint64(l.window))
	if hi > 0 || lo >= uint64(never) {
		return t.Add(never)
	}
	return cut(t, at.Add(time.Duration(lo)))
}

// Commit implements [Scheduler]. It counts at left.
func (l *SlidingLog) Commit(due, left time.Time, n int64) {
	mustBeMade(l.limit > 0, "SlidingLog")
	left = later(left, l.seen)
	if len(l.ring) == 0 {
		l.epoch = left
	}
	l.seen = left
	at := int64(left.Sub(l.epoch))
	for range min(n, l.limit) {
		l.push(at)
	}
}

// push enters one unit, in place of the oldest if the log is full.
func (l *SlidingLog) push(at int64) {
	if size := int64(len(l.ring)); size >= l.limit {
		l.ring[l.first] = at
		l.first = (l.first + 1) % len(l.ring)
		return
	} else if len(l.ring) == cap(l.ring) {
		// By doubling, as append does, but never beyond the limit.
		l.ring = append(make([]int64, 0, min(max(2*size, 16), l.limit)), l.ring...)
	}
	l.ring = append(l.ring, at)
}

// SetLimit changes the limit as of now. The units that left within the window stay
// in the log: after a cut the next one leaves when few enough of them are in it.
func (l *SlidingLog) SetLimit(now time.Time, limit int64) error {
	mustBeMade(l.limit > 0, "SlidingLog")
	if err := checkWindow(limit, l.window); err != nil {
		return err
	}
	// In order, without those that have aged out; more than limit may be left.
	ordered := append(append([]int64(nil), l.ring[l.first:]...), l.ring[:l.first]...)
	horizon := int64(later(now, l.seen).Add(-l.window).Sub(l.epoch))
	for len(ordered) > 0 && ordered[0] <= horizon {
		ordered = ordered[1:]
	}
	l.limit, l.ring, l.first = limit, slices.Clip(ordered), 0
	return nil
}

// entry returns when the unit left that is i places after the oldest in the log.
func (l *SlidingLog) entry(i int) time.Time {
	return l.epoch.Add(time.Duration(l.ring[(l.first+i)%len(l.ring)]))
}

// cut returns at, or the instant 292 years after t if that is sooner.
func cut(t, at time.Time) time.Time {
	if at.Sub(t) == never {
		return t.Add(never)
	}
	return at
}
