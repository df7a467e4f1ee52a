package transport

import (
	"context"
	"time"
)

// Waiter decides when a request may leave.
//
// Wait blocks until one unit may leave and returns nil, or returns why it may not.
// It must be safe for concurrent use and must return when ctx ends. A Waiter may have
// more methods, which *shaper.Shaper all has; what a Transport does with them is in the
// package documentation:
//
//	WaitN(ctx context.Context, cost int) error  // a cost other than 1
//	LeaveNow(cost int) bool                     // leaves at once, or counts as nothing
//	Charge(cost int)                            // what left without asking
//	HoldUntil(t time.Time)                      // nobody leaves before t
//	Scale(num, den int64) error                 // runs at a part of its rate
//	Delay() time.Duration                       // what a newcomer would wait now
//
// All but the waits must not block and must not call back.
//
// An error of the Waiter may say more about itself through four optional methods,
// looked for with [errors.As]:
//
//	Timeout() bool             // refused because of a deadline or a longest allowed delay
//	WouldWait() time.Duration  // the wait that was needed; 0 or 1 ns means unknown
//	HeldUntil() time.Time      // the end of a hold that was in the way; zero means none
//	Brief() string             // its text without that wait and that hold
//
// x/time's *rate.Limiter is a Waiter with WaitN. Its errors have none of these, and the
// one for a deadline that it cannot meet does not match [context.DeadlineExceeded]: it
// reaches the caller as an [*Error] that is no timeout.
type Waiter interface {
	Wait(ctx context.Context) error
}

// KeyedWaiter is a [Waiter] for each key, as *shaper.Group[string] is. It may have the
// same further methods, each with a key:
//
//	WaitN(ctx context.Context, key string, cost int) error
//	LeaveNow(key string, cost int) bool
//	Charge(key string, cost int) error
//	HoldUntil(key string, t time.Time) error
//	Scale(key string, num, den int64) error
//	Delay(key string) time.Duration
type KeyedWaiter interface {
	Wait(ctx context.Context, key string) error
}

// A pace is a Waiter or a KeyedWaiter with what it can do. A function is nil if it
// cannot; a Waiter ignores the key.
type pace struct {
	wait     func(ctx context.Context, key string) error
	waitN    func(ctx context.Context, key string, cost int) error
	leaveNow func(key string, cost int) bool
	charge   func(key string, cost int)
	hold     func(key string, t time.Time) error
	scale    func(key string, num, den int64)
	delay    func(key string) time.Duration
}

func paceOf(w Waiter) pace {
	p := pace{wait: func(ctx context.Context, _ string) error { return w.Wait(ctx) }}
	if w, ok := w.(interface {
		WaitN(ctx context.Context, cost int) error
	}); ok {
		p.waitN = func(ctx context.Context, _ string, cost int) error { return w.WaitN(ctx, cost) }
	}
	if w, ok := w.(interface{ LeaveNow(cost int) bool }); ok {
		p.leaveNow = func(_ string, cost int) bool { return w.LeaveNow(cost) }
	}
	if w, ok := w.(interface{ Charge(cost int) }); ok {
		p.charge = func(_ string, cost int) { w.Charge(cost) }
	}
	if w, ok := w.(interface{ HoldUntil(t time.Time) }); ok {
		p.hold = func(_ string, t time.Time) error { w.HoldUntil(t); return nil }
	}
	if w, ok := w.(interface{ Delay() time.Duration }); ok {
		p.delay = func(string) time.Duration { return w.Delay() }
	}
	if w, ok := w.(interface{ Scale(num, den int64) error }); ok {
		p.scale = func(_ string, num, den int64) { _ = w.Scale(num, den) }
	}
	return p
}

// Errors of charges and scales are about keys that cannot be made, and about rates that
// cannot be set: there is nothing to be done.
func paceOfKeyed(w KeyedWaiter) pace {
	p := pace{wait: w.Wait}
	if w, ok := w.(interface {
		WaitN(ctx context.Context, key string, cost int) error
	}); ok {
		p.waitN = w.WaitN
	}
	if w, ok := w.(interface {
		LeaveNow(key string, cost int) bool
	}); ok {
		p.leaveNow = w.LeaveNow
	}
	if w, ok := w.(interface {
		Charge(key string, cost int) error
	}); ok {
		p.charge = func(key string, cost int) { _ = w.Charge(key, cost) }
	}
	if w, ok := w.(interface {
		HoldUntil(key string, t time.Time) error
	}); ok {
		p.hold = w.HoldUntil
	}
	if w, ok := w.(interface {
		Delay(key string) time.Duration
	}); ok {
		p.delay = w.Delay
	}
	if w, ok := w.(interface {
		Scale(key string, num, den int64) error
	}); ok {
		p.scale = func(key string, num, den int64) { _ = w.Scale(key, num, den) }
	}
	return p
}
