// Package scheduler computes when a call may leave.
//
// A [Scheduler] is a pure state machine: time is an argument, and nothing here
// reads a clock, starts a goroutine, takes a lock or sleeps. Package shaper makes
// callers wait until the instants that a Scheduler names; use this package alone
// to simulate a limit, to meter one with [Allow], or to write a schedule of your
// own and hold it against the suite in package schedulertest.
//
// # The GCRA on one screen
//
// The Generic Cell Rate Algorithm (ITU-T Recommendation I.371, ATM Forum Traffic
// Management 4.1) keeps one instant per limit: the theoretical arrival time TAT,
// when the next unit would leave if the line never ran dry. T is the emission
// interval, the inverse of the rate. [GCRA] uses its virtual scheduling form to
// pace, so a unit that comes early is not dropped but given its due time. Five
// calls a to e at 10 per second (T = 100 ms), burst B = 1:
//
//	ms       0       100     200     300     400     500     600
//	         |-------|-------|-------|-------|-------|-------|----
//	arrive   abc                                 d     e
//	leave    a       b       c                   d       e
//	TAT              a       b       c                   d       e
//
// The last row shows where TAT stands once that call has left.
//
//   - a finds TAT in the past: it leaves at once, and TAT becomes 0 + T.
//   - b and c arrive at 0 too. They are due at TAT: 100 and 200 ms.
//   - d arrives at 450 ms, after TAT (300 ms): the line ran dry. d leaves at once
//     and TAT becomes 450 + T. What was not used meanwhile is lost; that is why
//     idle time opens no gate for a burst.
//   - e arrives at 530 ms, before TAT, and is due at 550 ms.
//
// A burst B > 1 lets units go up to (B-1)·T before TAT: the token bucket of
// capacity B. The tolerance J, the standard's cell delay variation tolerance
// (CDVT), is the lateness that the schedule absorbs: a unit that was due at 100 ms
// and left at 101 because a timer was late still puts TAT at 200 ms. In every
// closed window of length w at most max(B, c) + floor((w+J)/T) units leave, where c is
// the largest cost of a call.
//
// # Words
//
//   - unit, cost: a call costs one unit unless it says otherwise
//   - rate, T: units per period, an exact fraction; T is the emission interval
//   - TAT: the theoretical arrival time of the next unit
//   - burst B: units that may leave back to back after a long idle spell
//   - due: the earliest instant at which a call may leave
//   - left: the instant at which it really left, never before due
//   - tolerance J: lateness that the schedule absorbs
//   - closed times: those in which nothing may leave, whatever was due
//   - line: the calls that wait, in order
//
// # Which schedule
//
// Each can pace and can meter, and [All] keeps several at once.
//
//	the partner says                        use              worst in a window w
//	"100 per second", or nothing exact      GCRA, burst 1    1 + w/T
//	"100 per second, bursts of 20"          TokenBucket      20 + w/T
//	"a bucket of 40 that leaks 2 a second"  LeakyBucket      40 + w/T
//	"1,000 in any 60 seconds"               Within           1,000
//	the same, and 1,000 at once are fine    SlidingLog       1,000
//	"10,000 per calendar day"               FixedWindow      20,000 around midnight
//	counts like a sliding gateway           SlidingCounter   see there
//	"open from 09:00 to 17:30"              Hours            see there
//
// # State that outlives the process
//
// Every schedule here is an encoding.BinaryMarshaler and BinaryUnmarshaler, so that
// a quota survives a restart: save on shutdown, load at start. The bytes hold the
// limits too, so a zero value can load them; to change a limit, load and then call
// SetRate or SetLimit. They carry a version and a checksum, and foreign or damaged
// ones are refused. The state of a schedule that a Shaper owns is part of the Shaper's own:
// its MarshalBinary takes it under the lock.
//
// A quota that must survive a crash is saved while it is in use: of a schedule that is
// used alone after each Commit, before the call is sent; of one that a Shaper owns by the
// Shaper's MarshalBinary, as the schedule itself may be behind. Units that
// have left since the last saving may leave once more.
//
// Instants are saved as the wall clock tells them, and time away counts as elapsed.
// If that clock is set back meanwhile, a schedule waits until it has caught up.
//
// # Costs that are known afterwards
//
// Tokens, points of a query or bytes are counted when a call has ended. Charge what it may cost
// at most, and say later what it has cost: to settle makes all as if that had been known, which
// is less than to take the difference off what is owed; see [Settler]. Beside a limit of tokens
// [PerCall] keeps one of calls.
//
// # Exactness
//
// A [Rate] is a fraction and stays one. Instants are whole nanoseconds plus a
// fraction in lowest terms, so nothing is rounded until an answer is given, and
// then upwards: a unit may leave less than 1 ns late and never early. At 3 per
// second the units leave at 0, 333.333334, 666.666667 and 1000.000000 ms, and
// 10,800 leave in an hour. Sums and products that go beyond 292 years stay there;
// none wraps around.
package scheduler
