package scheduler

import (
	"slices"
	"time"
)

// All returns the schedule that keeps every given limit at once: units leave when
// all of them allow it, and each is charged what really left. A call that one
// limit holds back takes nothing from the others, so waits do not add up.
//
// Its Next is exact for ahead = 0, and for ahead > 0 if all limits are GCRAs and
// the units ahead come one by one; otherwise it is a lower bound. Its Rate is the
// slowest one and its MaxCost the smallest one.
//
// All without a limit delays nothing. A nil Scheduler is a programming error and
// panics.
func All(s ...Scheduler) Scheduler {
	limits := make(all, len(s))
	for i, limit := range s {
		if limit == nil {
			panic("scheduler: All: nil Scheduler")
		}
		limits[i] = limit
	}
	// Those that prepare for what they are asked about come last; see soonest.
	slices.SortStableFunc(limits, func(a, b Scheduler) int { return prepares(a) - prepares(b) })
	return limits
}

// prepares returns 1 for a limit whose answers change by themselves.
func prepares(s Scheduler) int {
	if _, ok := s.(interface{ Notify(func()) }); ok {
		return 1
	}
	return 0
}

type all []Scheduler

func (a all) Next(t time.Time, ahead, n int64) time.Time {
	if ahead > 0 {
		// Units that one limit holds back leave late for the others too. From the
		// departure of the first unit on each limit can be asked alone: of two
		// limits in a row the slower one alone is never exceeded.
		t = a.soonest(t, 0, 1)
	}
	return a.soonest(t, ahead, n)
}

// soonest returns the latest of all answers: what may leave at one instant may
// leave at every later one.
//
// With nobody ahead each limit is asked about the instant that those before it have come
// to. So a limit that prepares for what it is asked about, as one that is shared does,
// learns when it is needed: such ones stand behind the others.
func (a all) soonest(t time.Time, ahead, n int64) time.Time {
	next := t
	for _, limit := range a {
		from := t
		if ahead == 0 {
			from = next
		}
		next = later(next, limit.Next(from, ahead, n))
	}
	if next.Sub(t) == never {
		return t.Add(never)
	}
	return next
}

func (a all) Commit(due, left time.Time, n int64) {
	for _, limit := range a {
		limit.Commit(due, left, n)
	}
}

func (a all) MaxCost() int64 {
	lowest := int64(maxInt64)
	for _, limit := range a {
		lowest = min(lowest, limit.MaxCost())
	}
	return lowest
}

// Forfeit passes on to the limits that can save units up; see [GCRA.Forfeit].
func (a all) Forfeit(t time.Time, keep int64) {
	for _, limit := range a {
		if l, ok := limit.(interface{ Forfeit(time.Time, int64) }); ok {
			l.Forfeit(t, keep)
		}
	}
}

// Forfeited is Forfeit on a copy; see [GCRA.Forfeited].
func (a all) Forfeited(t time.Time, keep int64) Scheduler {
	other := make(all, len(a))
	for i, limit := range a {
		other[i] = limit // as it is, if it saves nothing up
		if l, ok := limit.(interface {
			Forfeited(time.Time, int64) Scheduler
		}); ok {
			other[i] = l.Forfeited(t, keep)
		}
	}
	return other
}

// Notify passes on to the limits whose answers change by themselves; see [Scheduler].
func (a all) Notify(again func()) {
	for _, limit := range a {
		if l, ok := limit.(interface{ Notify(func()) }); ok {
			l.Notify(again)
		}
	}
}

// Hold passes on to the limits that share holds; see [Scheduler].
func (a all) Hold(until time.Time) {
	for _, limit := range a {
		if l, ok := limit.(interface{ Hold(time.Time) }); ok {
			l.Hold(until)
		}
	}
}

// Tolerance returns the lowest tolerance among the limits that have one.
func (a all) Tolerance() time.Duration {
	lowest := never
	for _, limit := range a {
		if l, ok := limit.(interface{ Tolerance() time.Duration }); ok {
			lowest = min(lowest, l.Tolerance())
		}
	}
	if lowest == never {
		return 0
	}
	return lowest
}

// Rate returns the slowest rate among the limits that have one.
func (a all) Rate() Rate {
	slowest := Unlimited
	for _, limit := range a {
		if l, ok := limit.(interface{ Rate() Rate }); ok && l.Rate().Cmp(slowest) < 0 {
			slowest = l.Rate()
		}
	}
	return slowest
}
