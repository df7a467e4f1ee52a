package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Settler is a schedule whose departures may turn out to have cost something else than was
// charged. To settle one makes all as it would be if the true cost had been known when it
// left: the state is that of a replay of all departures at the instants at which they left.
// What has left later meanwhile, or earlier, stays where it was, and time that was missed
// because too much was charged is not caught up.
//
// That is less than to take the difference off what is owed: as far as the line has run dry
// since then, what comes back would have been lost anyway.
//
// A schedule remembers each unsettled departure until it is settled, and nothing of the others.
// So their number has to be bounded, and one of which nothing is heard to be settled with what
// was charged: a [Ledger] does both. A saved state holds none: what is unsettled is final in it,
// as charged.
type Settler interface {
	// CommitUnsettled is Commit for a departure that may be settled. Each has a higher id than
	// all before it.
	CommitUnsettled(id uint64, due, left time.Time, n int64)

	// Settle says that the departure has cost actual units, which may be 0. Where that is more,
	// what leaves next is due no earlier by it, and where it is less no later. An actual below 0
	// is an error, as is a departure that is final or was settled before, which is [ErrFinal];
	// an error has changed nothing.
	Settle(id uint64, actual int64) error

	// Unsettled returns how many departures may still be settled.
	Unsettled() int
}

// ErrFinal is the error of settling a departure that can no longer be settled: it was before,
// or it has become final.
var ErrFinal = errors.New("scheduler: the departure is final")

var (
	_ Settler = (*GCRA)(nil)
	_ Settler = (*TokenBucket)(nil)
	_ Settler = (*LeakyBucket)(nil)
	_ Settler = (*FixedWindow)(nil)
	_ Settler = (*SlidingLog)(nil)
	_ Settler = (*SlidingCounter)(nil)
	_ Settler = all(nil)
)

func checkActual(actual int64) error {
	if actual < 0 {
		return fmt.Errorf("scheduler: %d units: a departure costs at least 0", actual)
	}
	return nil
}

// CommitUnsettled implements [Settler]. A limit that is none is charged as by Commit, for
// good.
func (a all) CommitUnsettled(id uint64, due, left time.Time, n int64) {
	for _, limit := range a {
		if s, ok := limit.(Settler); ok {
			s.CommitUnsettled(id, due, left, n)
		} else {
			limit.Commit(due, left, n)
		}
	}
}

// Settle implements [Settler], for all limits that are Settlers. It is [ErrFinal] if the
// departure is final for each of them.
func (a all) Settle(id uint64, actual int64) error { return settleAll(a, id, actual) }

// settleAll settles a departure of several limits. One of them may have made it final by
// itself, where a wait went beyond all that can be told.
func settleAll(limits []Scheduler, id uint64, actual int64) error {
	if err := checkActual(actual); err != nil {
		return err
	}
	settled := false
	for _, limit := range limits {
		if s, ok := limit.(Settler); ok && s.Settle(id, actual) == nil {
			settled = true
		}
	}
	if !settled {
		return ErrFinal
	}
	return nil
}

// Unsettled implements [Settler].
func (a all) Unsettled() int {
	most := 0
	for _, limit := range a {
		if s, ok := limit.(Settler); ok {
			most = max(most, s.Unsettled())
		}
	}
	return most
}

// CanSettle reports whether what leaves under a schedule can be settled: it is a [Settler],
// and of several limits at least one is.
func CanSettle(s Scheduler) bool {
	if several, ok := s.(interface{ Limits() []Scheduler }); ok {
		if limits := several.Limits(); len(limits) > 0 {
			_, settles := s.(Settler)
			return settles && slices.ContainsFunc(limits, CanSettle)
		}
	}
	_, ok := s.(Settler)
	return ok
}
