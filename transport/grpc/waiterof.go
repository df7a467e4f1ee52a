package grpcpace

import (
	"context"
	"time"

	"github.com/sluice-go/sluice/transport"
	"github.com/sluice-go/sluice/transport/internal/limiter"
)

// A waiter is a Waiter or a KeyedWaiter with what of it is used here. A function is nil if it
// cannot; a Waiter ignores the key.
type waiter struct {
	is     any // the Waiter itself, for its name
	wait   func(ctx context.Context, key string) error
	waitN  func(ctx context.Context, key string, cost int) error
	charge func(key string, cost int)
	hold   func(key string, t time.Time)
}

func waiterOf(w transport.Waiter) waiter {
	u := waiter{is: w, wait: func(ctx context.Context, _ string) error { return w.Wait(ctx) }}
	if w, ok := w.(transport.CostWaiter); ok {
		u.waitN = func(ctx context.Context, _ string, cost int) error { return w.WaitN(ctx, cost) }
	}
	if w, ok := w.(transport.Charger); ok {
		u.charge = func(_ string, cost int) { w.Charge(cost) }
	}
	if w, ok := w.(transport.Holder); ok {
		u.hold = func(_ string, t time.Time) { w.HoldUntil(t) }
	}
	u.wait, u.waitN = limiter.Explain(w, u.wait, u.waitN)
	return u
}

// The errors of Charge and HoldUntil are about keys that cannot be made, for which no RPC can
// wait either: there is nothing to be done.
func waiterOfKeyed(w transport.KeyedWaiter) waiter {
	u := waiter{is: w, wait: w.Wait}
	if w, ok := w.(transport.KeyedCostWaiter); ok {
		u.waitN = w.WaitN
	}
	if w, ok := w.(transport.KeyedCharger); ok {
		u.charge = func(key string, cost int) { _ = w.Charge(key, cost) }
	}
	if w, ok := w.(transport.KeyedHolder); ok {
		u.hold = func(key string, t time.Time) { _ = w.HoldUntil(key, t) }
	}
	return u
}
