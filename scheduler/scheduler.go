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
// A schedule may have closed times: what may leave at one instant need not be allowed at
// a later one, as with the open hours of a partner. So Next promises its instant and no
// other. A caller that comes later than the due time, as its timer was late, asks again
// about the present, Next(now, 0, n), and waits on if the answer lies ahead; otherwise it
// commits the due time for which it waited. Of several limits each is asked again about
// the instant to which the others have moved, until all agree; [All] does it.
//
// An implementation must pass the suite in package schedulertest. In particular
//
//   - Next is exact for ahead = 0: it is the earliest instant, not before t, at which n
//     units may leave. At all instants from t to it they may not, and asked about it,
//     Next returns it;
//   - for ahead > 0 it is never later than what really comes out, and each
//     implementation says when it is exact;
//   - a later t, more units ahead or a larger n never make Next earlier, nor does a
//     departure, but for 1 ns of rounding;
//   - a t before the latest instant on the schedule counts as that instant, so a
//     stale clock reading mints no capacity;
//   - MaxCost is at least 1;
//   - no argument makes it panic, return an instant before t, or wrap around: a
//     wait beyond 292 years is cut to 292 years after t, the longest Duration. An
//     ahead below 0 counts as 0, an n below 1 as 1, and an n above MaxCost waits
//     that long.
//
// What a Scheduler may do besides has an interface each: [Rated], [RateSetter],
// [Forfeiter], [Tolerant], [Notifier], [Demander], [Refuser], [Holder], [Settler] and
// [UsedSetter].
//
// The zero value of a schedule of this package is there to load a saved state into. Its
// MaxCost is 0, and its other methods panic until a state has been loaded.
type Scheduler interface {
	// Next returns the earliest instant, not before t, at which n units may
	// leave once ahead more units have left before them. It changes nothing.
	Next(t time.Time, ahead, n int64) time.Time

	// Commit records that n units that were due at due left at left.
	Commit(due, left time.Time, n int64)

	// MaxCost is the largest n that can ever leave.
	MaxCost() int64
}
