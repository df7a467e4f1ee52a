// Package precise wakes up on time: tens of microseconds after an instant, where Go's
// own timers may be a millisecond late.
//
// The runtime sleeps in its poller, whole milliseconds at a time. But it wakes at once
// for a file descriptor that the poller watches. On Linux a timer can be one: a
// timerfd. All Alarms of a process share one timerfd and one goroutine, the release
// goroutine, which sleeps in the poller until the earliest of them is due:
//
//	      Set           nothing due
//	none -----> awake ------------> asleep
//	  ^         |   ^                  |
//	  `---------'   `------------------'
//	   idle since     the timerfd expires
//	   the linger
//
// A process that has no Alarm set has no goroutine of this package either, but for the
// time it lingers, so that an Alarm set again soon starts none.
//
// # Clocks
//
// An Alarm follows the machine's monotonic clock and no other. A clock that a test
// fakes does not reach it. In a bubble of testing/synctest [Available] is false, and
// what [New] makes there is a plain timer of the bubble's, as it is wherever Available
// is false. An Alarm that was made outside a bubble must not be used inside: it would
// go by the real time, and the release goroutine might belong to the bubble.
//
// # Locks
//
// One lock guards all Alarms. It is never held while a function of an Alarm runs: a
// caller may hold its own lock while it calls Set or Stop, and its function may take
// the same lock.
package precise
