package transport

import (
	"context"
	"time"

	"github.com/sluice-go/sluice/transport/internal/limiter"
)

// A waiter is a Waiter or a KeyedWaiter with all that it may say. A function is nil if it
// does not; a Waiter ignores the key.
type waiter struct {
	is any // the Waiter itself, for its name

	wait     func(ctx context.Context, key string) error
	waitN    func(ctx context.Context, key string, cost int) error
	leaveNow func(key string, cost int) bool
	charge   func(key string, cost int)
	hold     func(key string, t time.Time) error
	scale    func(key string, num, den int64)
	canScale func() error
	delay    func(key string) time.Duration

	withArrival func(ctx context.Context, t time.Time) context.Context

	// All or none:
	setMaxInFlight func(n int) error
	maxInFlight    func(key string) int
	acquire        func(ctx context.Context, key string, cost int) error
	release        func(key string)
}

func waiterOf(w Waiter) waiter {
	u := waiter{is: w, wait: func(ctx context.Context, _ string) error { return w.Wait(ctx) }}
	if w, ok := w.(CostWaiter); ok {
		u.waitN = func(ctx context.Context, _ string, cost int) error { return w.WaitN(ctx, cost) }
	}
	if w, ok := w.(Leaver); ok {
		u.leaveNow = func(_ string, cost int) bool { return w.LeaveNow(cost) }
	}
	if w, ok := w.(Charger); ok {
		u.charge = func(_ string, cost int) { w.Charge(cost) }
	}
	if w, ok := w.(Holder); ok {
		u.hold = func(_ string, t time.Time) error { w.HoldUntil(t); return nil }
	}
	if w, ok := w.(Predictor); ok {
		u.delay = func(string) time.Duration { return w.Delay() }
	}
	if w, ok := w.(Scaler); ok {
		u.scale = func(_ string, num, den int64) { _ = w.Scale(num, den) }
	}
	if w, ok := w.(ScaleChecker); ok {
		u.canScale = w.CanScale
	}
	if w, ok := w.(ArrivalKeeper); ok {
		u.withArrival = w.WithArrival
	}
	if w, ok := w.(Places); ok {
		u.setMaxInFlight = w.SetMaxInFlight
		u.maxInFlight = func(string) int { return w.MaxInFlight() }
		u.acquire = func(ctx context.Context, _ string, cost int) error { return w.Acquire(ctx, cost) }
		u.release = func(string) { w.Release() }
	}
	u.wait, u.waitN = limiter.Explain(w, u.wait, u.waitN)
	return u
}

// Errors of charges are about keys that cannot be made, and those of scales are what
// CanScale is for: there is nothing to be done.
func waiterOfKeyed(w KeyedWaiter) waiter {
	u := waiter{is: w, wait: w.Wait}
	if w, ok := w.(KeyedCostWaiter); ok {
		u.waitN = w.WaitN
	}
	if w, ok := w.(KeyedLeaver); ok {
		u.leaveNow = w.LeaveNow
	}
	if w, ok := w.(KeyedCharger); ok {
		u.charge = func(key string, cost int) { _ = w.Charge(key, cost) }
	}
	if w, ok := w.(KeyedHolder); ok {
		u.hold = w.HoldUntil
	}
	if w, ok := w.(KeyedPredictor); ok {
		u.delay = w.Delay
	}
	if w, ok := w.(KeyedScaler); ok {
		u.scale = func(key string, num, den int64) { _ = w.Scale(key, num, den) }
	}
	if w, ok := w.(ScaleChecker); ok {
		u.canScale = w.CanScale
	}
	if w, ok := w.(ArrivalKeeper); ok {
		u.withArrival = w.WithArrival
	}
	if w, ok := w.(KeyedPlaces); ok {
		u.setMaxInFlight, u.maxInFlight, u.acquire, u.release = w.SetMaxInFlight, w.MaxInFlight, w.Acquire, w.Release
	}
	return u
}
