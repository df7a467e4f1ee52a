// Package shaper makes calls wait their turn.
//
// A [Shaper] lets each call leave as early as its limits allow, in order, and never
// earlier:
//
//	s, err := shaper.New(scheduler.PerSecond(10))
//	...
//	if err := s.Wait(ctx); err != nil {
//		return err // not sent, no slot used
//	}
//	send()
//
// # Promises
//
//  1. Shape: at most max(B, c) + floor((w+J)/T) units leave in any closed window of
//     length w, with burst B, emission interval T, tolerance J, and c the largest cost
//     of a call. Idle time, a stopped process or a step of the clock opens no gate for
//     more.
//  2. Never early: no call leaves before it is due.
//  3. Order: first come, first out. A newcomer never overtakes; nor does Allow. With
//     [WithClasses] that holds inside a class, and an urgent call overtakes by a bound.
//  4. No slot is lost: a call that gives up is as if it had never come, and
//     the calls behind it move up at once.
//  5. Earliest: what leaves, leaves at the earliest instant that the limits allow.
//     Timers that are late by up to J do not add up.
//  6. Bounded: the line has a capacity, in calls and, by option, in time.
//  7. Told at once: a call that cannot leave before its deadline is refused on
//     arrival, with the wait that it would have needed.
//  8. One outcome: each call has left, was cancelled, or was refused.
//  9. Changes reach every call: a new rate, a pause and a hold apply to calls that
//     wait already.
//  10. Idle is free: no goroutine and no armed timer while no call waits.
//  11. All limits at once: a call of a key under an account ([Under]) leaves at the first
//     instant after it became next at which its key's limits and the account's both allow
//     it, and takes nothing of either before. A key that is held back delays no other.
//  12. Fair: with [WithWeights] a call leaves no later than the largest cost, in units of
//     the account, after an ideal fluid sharing would have finished it, whatever joins,
//     leaves, is cancelled, held, charged or weighed otherwise meanwhile.
//  13. Bounded overtaking: none that arrives more than the overtake of [WithClasses] times
//     the difference of their classes later leaves earlier.
//  14. The tolerance is for late timers only: with timers on time it changes nothing.
//
// # States
//
// A Shaper is open, draining or closed. Its gate is a matter of its own: while
// paused or held the line stands still in each state.
//
//	         Shutdown            Close
//	open ---------------> draining ---> closed
//	  \                                   ^
//	   `------------- Close --------------'
//
//	open      calls leave, wait, or are refused
//	draining  newcomers are refused with ErrClosed; waiting calls go on
//	closed    newcomers and waiting calls are refused with ErrClosed
//
//	        Pause                      HoldUntil(t), t later than now
//	free ----------> paused    free ----------------------------------> held
//	  ^                |         ^                                       |
//	  `---- Resume ----'         `-------- t has come, or Resume --------'
//
// One call:
//
//	arrives --> leaves at once        if no call waits, the gate is free, it is due
//	   |
//	   +------> refused               bad cost, closed, line full, too late
//	   |
//	   `------> waits --> leaves      when it is head of the line and due
//	              |
//	              +-----> cancelled   when its context ends first
//	              `-----> refused     by Close, or by a change that makes it too late
//
// Slots are bound when a call leaves and not when it arrives. So only the head of
// the line waits on time, on the one timer that is armed; the rest wait for it.
//
// # Many keys
//
// A [Group] has one limit for each key, of which it remembers a bounded number. A key is
// idle, and costs its TAT, or it is bound to a line while a call waits or something
// is special about it:
//
//	       first use                must wait, held, paused, other rate
//	(none) ---------> idle --------------------------------------------> bound
//	   ^               |  ^                                               |
//	   `---------------'  `-----------------------------------------------'
//	    TAT has passed               nothing is special any more
//
// [Under] has the keys of Groups stand in one line, that of an account: each call is under
// the limits of its key and those of the account, and who is next is asked at the moment at
// which a call would leave. Of the calls that their keys allow, the one goes that came first,
// or by [WithClasses] or [WithWeights].
//
//	           its key allows its head          next, and the account allows it
//	(blocked) -----------------------> (free) ----------------------------------> leaves
//	    ^                                |
//	    `--------------------------------'
//	      held, no place, or the call before took the units
//
// # Waiting without a goroutine
//
// [Shaper.Enqueue] and [Group.Enqueue] wait as Wait does and tell the answer by a call of a
// function.
//
// # State that outlives the process
//
// [Shaper.MarshalBinary] and [Group.MarshalBinary] save what is owed, of quotas too, and
// holds, while the limit is in use. See the example of the former.
//
// # Testing code that uses a Shaper
//
// In a [testing/synctest] bubble a Shaper that was made inside lives by the
// bubble's time. Elsewhere, give it a mock by [WithClock].
package shaper
