package shaper

import (
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// A lateness is what late timers have done to the line, and how far a call may go back for
// it. It is pure: time is an argument. With timers that are on time it changes nothing.
//
// A caller that is woken late comes back late, which would lower the rate of one that
// calls in a loop. So a call that finds the line empty may claim the instant at which its
// caller would have come, had it been woken on time. Two things bound a claim: how late
// the calls were that left the line last, and the instant before which no call of the line
// was due. What came before that instant has made no call late.
type lateness struct {
	tolerance time.Duration // J of the schedule; 0 if it tells none
	by        time.Duration // of the calls that left the line last, up to the tolerance
	// since: no call of the line was due before it.
	since time.Time
}

// woken notes the calls of one pass over the line, of which the first was due at due. It
// is the latest of them, and the callers of all of them come back together.
func (l *lateness) woken(due, now time.Time) {
	l.by = min(now.Sub(due), l.tolerance)
}

// left notes a departure.
func (l *lateness) left(due, now time.Time) {
	l.since = later(due, now.Add(-l.tolerance))
}

// passed notes that all that was due before now has been settled: by a charge, or by a
// head that went without leaving.
func (l *lateness) passed(now time.Time) {
	l.since = later(l.since, now)
}

// end lets no further call claim anything.
func (l *lateness) end() { l.by = 0 }

// toleranceOf returns the tolerance of a schedule, 0 if it tells none.
func toleranceOf(s scheduler.Scheduler) time.Duration {
	if tolerant, ok := s.(scheduler.Tolerant); ok {
		return max(tolerant.Tolerance(), 0)
	}
	return 0
}
