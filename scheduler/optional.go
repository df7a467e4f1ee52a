package scheduler

import "time"

// What a [Scheduler] may do besides. Each of these is found by a type assertion, and is
// to be called as the Scheduler itself is: by one goroutine at a time.

// A Rated schedule has an emission interval, and tells it.
type Rated interface {
	// Rate returns the rate at which units leave at most once nothing is saved up: n of
	// them in a row take no less than Rate().For(n), less 1 ns. A line bounds its backlog
	// by it. [Unlimited] says that the interval is 0.
	Rate() Rate
}

// A RateSetter is a schedule whose rate can be changed while it is in use.
type RateSetter interface {
	// SetRate changes the rate as of now. Units that are owed stay owed, and their time
	// is recomputed; so with a higher rate nothing is due later than before, and with a
	// lower one nothing earlier. An invalid rate, and one that the schedule cannot keep,
	// is an error that changes nothing.
	SetRate(now time.Time, r Rate) error
}

// A Forfeiter is a schedule that may have units saved up while none leave, and gives
// them up on demand. A line that was held calls it when it goes on, so that the time of
// the hold is no licence for a burst.
type Forfeiter interface {
	// Forfeit gives up what was saved up until t: of the units that might leave at t back
	// to back only keep may, and further ones each at its interval. A keep below 1 counts
	// as 1. Nothing becomes due earlier by it, and where nothing is saved up, nothing
	// changes.
	Forfeit(t time.Time, keep int64)

	// Forfeited returns the schedule as it would be after Forfeit, to be asked when
	// something would leave then. It leaves this one as it is.
	Forfeited(t time.Time, keep int64) Scheduler
}

// A Tolerant schedule absorbs lateness: a departure up to J after its due time is
// charged as of its due time, so that late timers do not lower the rate.
type Tolerant interface {
	// Tolerance returns J. It is never negative, and 0 absorbs nothing.
	Tolerance() time.Duration
}

// A Notifier is a schedule whose answers change by themselves, as those of one that
// processes share do.
//
// Until it knows when a unit may leave, it answers with its best guess, which must lie
// ahead of the present; the guess is good enough to refuse a call that cannot make its
// deadline. What waits it learns as a [Demander].
type Notifier interface {
	// Notify gives the schedule a function that has the line look at it again. It is
	// called once, before all other methods. The schedule may call the function at any
	// time and from any goroutine, but never within its own methods.
	Notify(again func())
}

// A Demander is a schedule that has to know what waits for it, as one that processes share
// does: it gets units for its line before they can leave. Its Next changes nothing all the same.
type Demander interface {
	// Demand tells what waits, whenever any of it has changed: so many units in all, of which the
	// call that is next costs cost and is of no use from deadline on; a zero deadline is none. For all
	// other limits they may leave from the given instant on. Of 0 units nothing waits, or nothing
	// that could leave. It must neither block nor call the line back.
	Demand(from time.Time, units, cost int64, deadline time.Time)
}

// A Refuser is a schedule that may be unable to let anything leave for an unknown time, as one
// whose store is away.
type Refuser interface {
	// Refusal returns why nothing may leave for now, or nil. The line refuses with that what comes,
	// and, once the schedule has notified it, what waits.
	Refusal() error
}

// A Holder is a schedule that passes a hold on to others, such as processes that share
// it.
type Holder interface {
	// Hold tells that the line is held until an instant of the wall clock. It does not
	// block, and nothing becomes due earlier by it.
	Hold(until time.Time)
}

var (
	_ Rated = (*GCRA)(nil)
	_ Rated = (*TokenBucket)(nil)
	_ Rated = (*LeakyBucket)(nil)

	_ RateSetter = (*GCRA)(nil)
	_ RateSetter = (*TokenBucket)(nil)
	_ RateSetter = (*LeakyBucket)(nil)

	_ Forfeiter = (*GCRA)(nil)
	_ Forfeiter = (*TokenBucket)(nil)
	_ Forfeiter = (*LeakyBucket)(nil)
	_ Forfeiter = all(nil)

	_ Tolerant = (*GCRA)(nil)
	_ Tolerant = all(nil)

	_ Demander = all(nil)
	_ Refuser  = all(nil)

	_ Rated    = ratedAll{}
	_ Notifier = notifiedAll{}
	_ Holder   = heldAll{}
)
