package scheduler

import "time"

// A Scheduler answers one question: when may a call leave? It is a pure state
// machine. Time is an argument; a Scheduler reads no clock, starts no goroutine
// and takes no lock, and so it is not safe for concurrent use.
//
// A caller asks Next, waits until that instant by its own means, and reports the
// departure with Commit. Between the two nothing is reserved: a caller that gives
// up has nothing to hand back.
//
// An implementation must pass the suite in package schedulertest. In particular
//
//   - Next is exact for ahead = 0: at the instant it returns, n units may leave,
//     and one nanosecond earlier they may not;
//   - for ahead > 0 it is never later than what really comes out, and each
//     implementation says when it is exact;
//   - a t before the latest instant on the schedule counts as that instant, so a
//     stale clock reading mints no capacity;
//   - no argument makes it panic, return an instant before t, or wrap around: a
//     wait beyond 292 years is cut to 292 years after t, the longest Duration. An
//     ahead below 0 counts as 0, an n below 1 as 1, and an n above MaxCost waits
//     that long.
//
// A Scheduler may also have the methods
//
//	Rate() Rate                                    // where it has an emission interval
//	SetRate(now time.Time, r Rate) error           // as GCRA.SetRate
//	Forfeit(t time.Time, keep int64)               // as GCRA.Forfeit
//	Forfeited(t time.Time, keep int64) Scheduler   // as GCRA.Forfeited
//	Tolerance() time.Duration                      // as GCRA.Tolerance
//	Notify(again func())                           // its answers change by themselves
//	Hold(until time.Time)                          // it shares holds with others
//
// A line needs the first to bound its backlog, the second to change its rate, the
// next two to resume evenly after a hold, and Tolerance to keep the rate of a caller
// that is woken late and comes back late.
//
// Notify is for a schedule that others change too, one that processes share, say. It is
// called once, before all others, with what has the line look at the schedule again;
// the schedule may call that at any time but within its own methods, and from any
// goroutine. Until it knows when a unit may leave, such a schedule answers with its best
// guess, which must lie ahead of the present; the guess is good enough to refuse a call
// that cannot make its deadline. It sees what waits as ahead. Hold is called when the
// line is held until an instant of the wall clock. It must not block.
type Scheduler interface {
	// Next returns the earliest instant, not before t, at which n units may
	// leave once ahead more units have left before them. It changes nothing.
	Next(t time.Time, ahead, n int64) time.Time

	// Commit records that n units that were due at due left at left.
	Commit(due, left time.Time, n int64)

	// MaxCost is the largest n that can ever leave.
	MaxCost() int64
}
