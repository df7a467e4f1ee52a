package grpcpace

import (
	"context"
	"time"

	"github.com/sluice-go/sluice/transport"
)

// A pace is a Waiter or a KeyedWaiter with what it can do. A function is nil if it cannot;
// a Waiter ignores the key.
type pace struct {
	wait   func(ctx context.Context, key string) error
	waitN  func(ctx context.Context, key string, cost int) error
	charge func(key string, cost int)
	hold   func(key string, t time.Time)
}

func paceOf(w transport.Waiter) pace {
	p := pace{wait: func(ctx context.Context, _ string) error { return w.Wait(ctx) }}
	if w, ok := w.(interface {
		WaitN(ctx context.Context, cost int) error
	}); ok {
		p.waitN = func(ctx context.Context, _ string, cost int) error { return w.WaitN(ctx, cost) }
	}
	if w, ok := w.(interface{ Charge(cost int) }); ok {
		p.charge = func(_ string, cost int) { w.Charge(cost) }
	}
	if w, ok := w.(interface{ HoldUntil(t time.Time) }); ok {
		p.hold = func(_ string, t time.Time) { w.HoldUntil(t) }
	}
	return p
}

// The errors of Charge and HoldUntil are about keys that cannot be made, for which no RPC
// can wait either: there is nothing to be done.
func paceOfKeyed(w transport.KeyedWaiter) pace {
	p := pace{wait: w.Wait}
	if w, ok := w.(interface {
		WaitN(ctx context.Context, key string, cost int) error
	}); ok {
		p.waitN = w.WaitN
	}
	if w, ok := w.(interface {
		Charge(key string, cost int) error
	}); ok {
		p.charge = func(key string, cost int) { _ = w.Charge(key, cost) }
	}
	if w, ok := w.(interface {
		HoldUntil(key string, t time.Time) error
	}); ok {
		p.hold = func(key string, t time.Time) { _ = w.HoldUntil(key, t) }
	}
	return p
}
