// Package departures keeps the log of what left and when, and says in a few lines
// of text how evenly that was. It reads no clock.
package departures

import (
	"sync"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// A Log takes note of departures. Its memory is bounded, however many there are.
//
// A Log is safe for concurrent use.
type Log struct {
	rate scheduler.Rate

	mu       sync.Mutex
	count    int64
	units    int64
	first    time.Time
	last     time.Time
	lastCost int64
	smallest time.Duration
	waits    waits
	rows     histogram
}

// NewLog returns a Log for departures that are paced at the rate.
func NewLog(rate scheduler.Rate) *Log {
	return &Log{rate: rate, rows: newHistogram(rate)}
}

// Add notes that a call of the given units left after it had waited. One that is
// added after a later one counts as having left together with that.
func (l *Log) Add(left time.Time, units int64, waited time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if left.Before(l.last) {
		left = l.last
	}
	if l.count == 0 {
		l.first = left
	} else if gap := left.Sub(l.last); l.count == 1 || gap < l.smallest {
		l.smallest = gap
	}
	l.count++
	l.units += units
	l.last, l.lastCost = left, units
	l.waits.add(waited)
	l.rows.add(left.Sub(l.first), units)
}

// A Summary is what a Log knows at one moment.
type Summary struct {
	Count int64 // calls
	Units int64 // their units

	// Paid units left before the last call did, within Took. A call has to be paid
	// for after it left, by the gap to the next one: n calls have n-1 gaps, and what
	// the last one costs shows in none of them. So Paid/Took is the rate that was
	// achieved, and to count the last call too would overstate it.
	Paid int64
	Took time.Duration

	SmallestGap time.Duration // between two calls; no meaning for fewer than two
	P50, P99    time.Duration // waits of the last [Remembered] calls
	Longest     time.Duration // the longest wait of all

	rate  scheduler.Rate
	rows  []int64
	width time.Duration
}

// Summary returns a snapshot.
func (l *Log) Summary() Summary {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Summary{
		Count:       l.count,
		Units:       l.units,
		Paid:        l.units - l.lastCost,
		Took:        l.last.Sub(l.first),
		SmallestGap: l.smallest,
		Longest:     l.waits.longest,
		rate:        l.rate,
		rows:        append([]int64(nil), l.rows.rows[:l.rows.used]...),
		width:       l.rows.width,
	}
	s.P50, s.P99 = l.waits.percentiles()
	return s
}

// PerSecond returns the rate that was achieved. ok is false while there is no gap
// to tell it from.
func (s Summary) PerSecond() (rate float64, ok bool) {
	if s.Took <= 0 {
		return 0, false
	}
	return float64(s.Paid) / s.Took.Seconds(), true
}
