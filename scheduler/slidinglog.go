package scheduler

import (
	"math/bits"
	"sort"
	"time"
)

// SlidingLog lets up to limit units leave in any half-open window, wherever it
// begins: of limit+1 units in a row the last leaves at least one window after the
// first. It is exact, and uses all that the partner allows.
//
// Use it for "no more than 1,000 in any 60 seconds". When the limit is high and even
// spacing will do, [Within] does it with one instant in place of a log.
//
// Worst burst: limit units at once. Memory: 16 bytes for each instant of the latest window at
// which units left. A decision is a binary search among these. Its Next is exact for any
// ahead if those units come one by one.
//
// SlidingLog is not safe for concurrent use.
type SlidingLog struct {
	limit  int64
	window time.Duration

	// log tells of the instants at which units left, in order, those of the latest window at
	// least: the first gone entries are older. It is not cut at the limit, which may be raised,
	// and units may turn out not to have left.
	log   []logEntry
	gone  int
	epoch time.Time
	seen  time.Time

	unsettled windowCalls
}

// A logEntry is an instant, in ns since the epoch, and how many units had left by then, from
// the first entry on.
type logEntry struct{ at, total int64 }

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
	place := total - laps*l.limit // from 1 to limit
	at := t
	// Written as it is, as the sum of two totals may be too large.
	if before := l.units() - (l.limit - place); before > 0 {
		at = later(t, l.leftAt(before).Add(l.window))
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
	if len(l.log) == 0 {
		l.epoch = left
	}
	l.seen = left
	if n < 1 {
		return
	}
	l.forget()
	at := int64(left.Sub(l.epoch))
	total := saturatingSum(l.total(), n)
	if last := len(l.log) - 1; last >= l.gone && l.log[last].at == at {
		l.log[last].total = total
		return
	}
	l.log = append(l.log, logEntry{at, total})
}

// forget drops the entries that have aged out, some at a time.
func (l *SlidingLog) forget() {
	horizon := int64(l.seen.Add(-l.window).Sub(l.epoch))
	for l.gone < len(l.log) && l.log[l.gone].at <= horizon {
		l.gone++
	}
	if l.gone < 16 || l.gone < len(l.log)/2 {
		return
	}
	base := l.log[l.gone-1].total
	l.log = append(l.log[:0], l.log[l.gone:]...)
	for i := range l.log {
		l.log[i].total -= base
	}
	l.gone = 0
}

// total returns how many units left from the first entry on.
func (l *SlidingLog) total() int64 {
	if len(l.log) == 0 {
		return 0
	}
	return l.log[len(l.log)-1].total
}

// units returns how many units have not been seen to age out.
func (l *SlidingLog) units() int64 {
	if l.gone == 0 {
		return l.total()
	}
	return l.total() - l.log[l.gone-1].total
}

// leftAt returns when the unit left that is the i-th of those, from 1 on.
func (l *SlidingLog) leftAt(i int64) time.Time {
	if l.gone > 0 {
		i += l.log[l.gone-1].total
	}
	rest := l.log[l.gone:]
	found := sort.Search(len(rest), func(k int) bool { return rest[k].total >= i })
	return l.epoch.Add(time.Duration(rest[found].at))
}

// SetLimit changes the limit as of now. The units that left within the window stay
// in the log: after a cut the next one leaves when few enough of them are in it, and after a
// rise those beyond the old limit count as well.
func (l *SlidingLog) SetLimit(now time.Time, limit int64) error {
	mustBeMade(l.limit > 0, "SlidingLog")
	if err := checkWindow(limit, l.window); err != nil {
		return err
	}
	l.limit = limit
	return nil
}

// cut returns at, or the instant 292 years after t if that is sooner.
func cut(t, at time.Time) time.Time {
	if at.Sub(t) == never {
		return t.Add(never)
	}
	return at
}
