package partner

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// A Rule names the way in which a [Limit] counts. The zero Rule is the partner's
// own plain log, or even spacing; the others are the meters of package scheduler.
// A flag's text can be converted to a Rule: New refuses one that does not exist.
type Rule string

// The rules, for Units per Window.
const (
	TokenBucket    Rule = "token-bucket"    // a bucket of Burst tokens, full at first
	LeakyBucket    Rule = "leaky-bucket"    // a bucket of Burst units, empty at first
	FixedWindow    Rule = "fixed-window"    // windows that follow the wall clock in UTC
	SlidingLog     Rule = "sliding-log"     // in any half-open window
	SlidingCounter Rule = "sliding-counter" // an estimate from two fixed windows
	GCRA           Rule = "gcra"            // even spacing after a Burst
)

// Rules returns all rules but the zero one.
func Rules() []Rule {
	return []Rule{TokenBucket, LeakyBucket, FixedWindow, SlidingLog, SlidingCounter, GCRA}
}

// hasBurst tells whether the rule knows a burst.
func (r Rule) hasBurst() bool {
	return slices.Contains([]Rule{TokenBucket, LeakyBucket, GCRA}, r)
}

// burst returns the limit's burst, or what it is by default.
func (l Limit) burst() int64 {
	switch {
	case l.Burst != 0:
		return l.Burst
	case l.By == GCRA:
		return 1
	}
	return l.Units
}

// schedule returns a new meter of package scheduler for the limit's rule.
func (l Limit) schedule() (scheduler.Scheduler, error) {
	rate := scheduler.Per(l.Units, l.Window)
	switch l.By {
	case TokenBucket:
		return scheduler.NewTokenBucket(rate, l.burst())
	case LeakyBucket:
		return scheduler.NewLeakyBucket(rate, l.burst())
	case FixedWindow:
		return scheduler.NewFixedWindow(l.Units, l.Window)
	case SlidingLog:
		return scheduler.NewSlidingLog(l.Units, l.Window)
	case SlidingCounter:
		return scheduler.NewSlidingCounter(l.Units, l.Window)
	case GCRA:
		return scheduler.NewGCRA(rate, l.burst())
	}
	return nil, fmt.Errorf("rule %q: must be one of %q", l.By, Rules())
}

// A scheduleMeter lets a schedule decide.
type scheduleMeter struct {
	epoch    time.Time
	schedule scheduler.Scheduler
	slack    time.Duration
}

func (m *scheduleMeter) admit(now time.Duration, n int64) time.Duration {
	t := m.epoch.Add(now)
	due := m.schedule.Next(t, 0, n)
	if wait := due.Sub(t) - m.slack; wait > 0 {
		return wait
	}
	// A call that comes early is charged as if it had come when it was due, so that
	// being early each time does not add up to a higher rate.
	m.schedule.Commit(due, due, n)
	return 0
}

func (m *scheduleMeter) charge(at time.Duration, n int64) {
	t := m.epoch.Add(at)
	m.schedule.Commit(t, t, n)
}
