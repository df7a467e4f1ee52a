package scheduler

import "time"

// All returns the schedule that keeps every given limit at once: units leave when
// all of them allow it, and each is charged what really left. A call that one
// limit holds back takes nothing from the others, so waits do not add up.
//
// Its Next is exact for ahead = 0, in whatever order the limits are given, also if some
// of them have closed times. Limits that find no common instant in 1,000 proposals, such
// as two with closed times that never meet, let nothing leave: Next is 292 years later.
// For ahead > 0 it is exact if all limits are GCRAs and the units ahead come one by one;
// otherwise it is a lower bound. Its MaxCost is the smallest one.
//
// Of the optional interfaces it is a [Forfeiter], [Tolerant], a [Demander], a [Refuser] and a
// [Settler] for the limits that are (a limit that is no Settler stays charged with what was
// stated; see [CanSettle]), and a [Rated], a [Notifier] or a [Holder] if at least one limit is:
// its rate is the slowest one. It is no [RateSetter]; set the rate of the limit that is meant.
//
// All without a limit delays nothing. A nil Scheduler is a programming error and
// panics.
func All(s ...Scheduler) Scheduler {
	var limits all
	for _, limit := range s {
		if limit == nil {
			panic("scheduler: All: nil Scheduler")
		}
		if several, ok := limit.(interface {
			dressed() Scheduler
			Limits() []Scheduler
		}); ok {
			limits = append(limits, several.Limits()...) // what it has to say depends on all others
		} else {
			limits = append(limits, limit)
		}
	}
	return limits.dressed()
}

type all []Scheduler

// maxProposals bounds how often limits may put each other off. Two limits with closed
// times do it twice a day.
const maxProposals = 1000

func (a all) Next(t time.Time, ahead, n int64) time.Time {
	if ahead <= 0 {
		return cut(t, a.common(t, n))
	}
	// Units that one limit holds back leave late for the others too. From the
	// departure of the first unit on each limit can be asked alone: of two
	// limits in a row the slower one alone is never exceeded.
	first := a.common(t, 1)
	next := first
	for _, limit := range a {
		next = later(next, limit.Next(first, ahead, n))
	}
	// They leave when all limits allow it that have let those ahead leave. A limit that
	// has let more leave allows it no earlier, so to ask as if none were ahead gives a
	// lower bound.
	return cut(t, a.common(next, n))
}

// common returns the earliest instant, not before t, at which every limit allows n units.
// As what may leave at one instant need not at a later one, a limit that has agreed is
// asked again whenever another one has put the instant off.
func (a all) common(t time.Time, n int64) time.Time {
	proposals, proposer := 0, -1
	for i := 0; i < len(a); i++ {
		if i == proposer {
			continue // it allows what it has proposed
		}
		next := a[i].Next(t, 0, n)
		if !next.After(t) {
			continue
		}
		if proposals++; proposals > maxProposals || next.Sub(t) == never {
			return t.Add(never)
		}
		t, proposer, i = next, i, -1
	}
	return t
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
