package transport

import (
	"context"
	"time"
)

// Waiter decides when a request may leave.
//
// Wait blocks until one unit may leave and returns nil, or returns why it may not.
// It must be safe for concurrent use and must return when ctx ends.
//
// A Waiter may say more: it is a [CostWaiter], [Leaver], [Charger], [Holder], [HoldTeller],
// [Scaler], [Predictor], [Places], [Settler] or [ArrivalKeeper] if it has their methods, and
// *shaper.Shaper is all of them. All
// methods must be safe for concurrent use. Those without a context must not block and must
// not call back. An option that cannot work without one of them panics when the Transport is
// made. What a Transport does without being asked is left out if the Waiter cannot:
//
//   - no [CostWaiter]: what costs other than 1 is refused with [ErrCost];
//   - no [Holder]: a refusal of the partner's holds no request back but those that are sent
//     again because of [WithRetry]; Held is never told to a [Trace];
//   - no [HoldTeller]: the Transport remembers what it has told the Holder;
//   - no [Charger]: what net/http sends again by itself is not charged, and ExtraAttempt is
//     never told;
//   - no [Predictor] or [Places]: what cannot leave in time is refused when its time is up,
//     if the Waiter itself does not refuse it on arrival.
//
// A type that embeds a Waiter in an interface, struct{ transport.Waiter }, is a Waiter and
// nothing more.
//
// An error of the Waiter may say more about itself through four optional methods,
// looked for with [errors.As]:
//
//	Timeout() bool             // refused because of a deadline or a longest allowed delay
//	WouldWait() time.Duration  // the wait that was needed; 0 or 1 ns means unknown
//	HeldUntil() time.Time      // the end of a hold that was in the way; zero means none
//	Brief() string             // its text without that wait and that hold
//
// x/time's *rate.Limiter is a CostWaiter. Its errors have none of these, but it is known by
// its methods Burst and Tokens: its refusal for a deadline is a timeout and matches
// [context.DeadlineExceeded], as a Shaper's is and does.
type Waiter interface {
	Wait(ctx context.Context) error
}

// KeyedWaiter is a [Waiter] for each key, as *shaper.Group[string] is. It may say the same
// for each key: [KeyedCostWaiter], [KeyedLeaver] and so on.
type KeyedWaiter interface {
	Wait(ctx context.Context, key string) error
}

// CostWaiter is a Waiter for requests that cost more than one unit. WaitN is Wait for a
// cost, which is above 0. It is what [WithCost] needs.
type CostWaiter interface {
	WaitN(ctx context.Context, cost int) error
}

// Leaver is a Waiter that can tell without waiting. LeaveNow reports whether a call of the
// cost has left at once. A no counts as nothing, and means only that the Waiter has to be
// waited for.
type Leaver interface {
	LeaveNow(cost int) bool
}

// Charger is a Waiter that takes note of what has left without asking. Charge has the calls
// that wait, and those that come, wait for so many units more.
type Charger interface {
	Charge(cost int)
}

// Holder is a Waiter that can be held. After HoldUntil no call leaves before t, also none that
// waits already. A hold moves forward only: a t before the end of one that is in force
// changes nothing. When it ends the first call leaves at once and the next a whole interval
// later. It is what [WithMaxHold] needs.
type Holder interface {
	HoldUntil(t time.Time)
}

// HoldTeller is a [Holder] that tells of holds, whoever has set them. Held reports whether one is
// in force, and until when, as HoldUntil was told, to the nanosecond: so a Transport knows its
// own hold from another one, and that a hold was lifted.
type HoldTeller interface {
	Held() (until time.Time, held bool)
}

// Scaler is a Waiter that can run at a part of its rate. Scale sets the part to num/den, which
// is above 0 and at most 1, of the rate that was agreed; 1/1 is all of it. An error means
// that nothing has changed. It is what [WithAdaptiveRate] needs. One that is no [ScaleChecker] is
// asked for 1/1 when the Transport is made.
type Scaler interface {
	Scale(num, den int64) error
}

// ScaleChecker tells of a [Scaler] or [KeyedScaler] whether it is one in earnest. CanScale
// returns why Scale can never work, or nil.
type ScaleChecker interface {
	CanScale() error
}

// Predictor is a Waiter that knows its line. Delay returns what a newcomer of one unit would
// wait now, holds included. It may be too little, and must not be too much.
type Predictor interface {
	Delay() time.Duration
}

// Places is a Waiter that may bound how many calls are in flight. MaxInFlight returns that
// bound, which SetMaxInFlight sets, and 0 if there is none. Acquire is WaitN for a call that
// counts as in flight until Release: it leaves when fewer are than may be, and waits for that
// in the same line as for its turn. If it returns nil, Release is called exactly once. While
// there is a bound, each request takes a place. It is what [WithMaxInFlight] needs.
type Places interface {
	SetMaxInFlight(n int) error
	MaxInFlight() int
	Acquire(ctx context.Context, cost int) error
	Release()
}

// ArrivalKeeper is a [Waiter], or a [KeyedWaiter], whose calls may keep the place in the line of
// an earlier attempt. WithArrival returns a context whose calls stand in the line as if they had
// come at that time. It is what KeepPlace of a [Retry] needs.
type ArrivalKeeper interface {
	WithArrival(ctx context.Context, t time.Time) context.Context
}

// Settler is a [Waiter] for calls whose cost is known afterwards. DepartN is WaitN for one that
// is charged with cost and returns what says later, once, what it has really cost; after an error
// of that the call stays as it was charged. If inFlight is true the call takes a place as by
// Acquire of [Places]. CanSettle returns why that can never work, or nil. It is what [WithSettle]
// and [Settle] need.
type Settler interface {
	DepartN(ctx context.Context, cost int, inFlight bool) (settle func(actual int) error, err error)
	CanSettle() error
}

// KeyedCostWaiter is a [CostWaiter] for each key.
type KeyedCostWaiter interface {
	WaitN(ctx context.Context, key string, cost int) error
}

// KeyedLeaver is a [Leaver] for each key.
type KeyedLeaver interface {
	LeaveNow(key string, cost int) bool
}

// KeyedCharger is a [Charger] for each key. An error means that the key cannot be made, so
// that no call of it can wait either.
type KeyedCharger interface {
	Charge(key string, cost int) error
}

// KeyedHolder is a [Holder] for each key. An error means that the key could not be held: it
// is tried again before the next request of that key leaves.
type KeyedHolder interface {
	HoldUntil(key string, t time.Time) error
}

// KeyedHoldTeller is a [HoldTeller] for each key. What it tells of a key includes the account's
// holds, if the keys are under one.
type KeyedHoldTeller interface {
	Held(key string) (until time.Time, held bool)
}

// AccountHolder is a [KeyedHoldTeller] whose keys may be under an account, as those of a
// *shaper.Group made with shaper.Under are. HoldAccount is HoldUntil for the account, and reports
// whether there is one: once and for all. A refusal that
// is about the account (feedback.Verdict.Account) holds that, and otherwise the key.
type AccountHolder interface {
	HoldAccount(t time.Time) bool
}

// KeyedScaler is a [Scaler] for each key. For [WithAdaptiveRate] it must be a [ScaleChecker].
type KeyedScaler interface {
	Scale(key string, num, den int64) error
}

// KeyedPredictor is a [Predictor] for each key.
type KeyedPredictor interface {
	Delay(key string) time.Duration
}

// KeyedSettler is a [Settler] for each key.
type KeyedSettler interface {
	DepartN(ctx context.Context, key string, cost int, inFlight bool) (settle func(actual int) error, err error)
	CanSettle() error
}

// KeyedPlaces is [Places] for each key. SetMaxInFlight sets one bound for all of them.
type KeyedPlaces interface {
	SetMaxInFlight(n int) error
	MaxInFlight(key string) int
	Acquire(ctx context.Context, key string, cost int) error
	Release(key string)
}
