package engine

import (
	"context"
	"time"

	"github.com/sluice-go/sluice/transport/internal/limiter"
)

// A Waiter is a Waiter or a KeyedWaiter of package transport with all that it may say. A
// function is nil if it does not; a Waiter ignores the key.
type Waiter struct {
	Is  any  // the Waiter itself, for its name
	One bool // all calls have one key

	Wait     func(ctx context.Context, key string) error
	WaitN    func(ctx context.Context, key string, cost int) error
	LeaveNow func(key string, cost int) bool
	Charge   func(key string, cost int)
	Hold     func(key string, t time.Time) error
	Held     func(key string) (until time.Time, held bool) // nil if Hold is
	Scale    func(key string, num, den int64) error
	CanScale func() error
	Delay    func(key string) time.Duration

	WithArrival func(ctx context.Context, t time.Time) context.Context

	HoldAccount func(t time.Time) bool // nil: the keys are under no account

	// Both or none:
	Depart    func(ctx context.Context, key string, cost int, inFlight bool) (settle func(actual int) error, err error)
	CanSettle func() error

	// All or none:
	SetMaxInFlight func(n int) error
	MaxInFlight    func(key string) int
	Acquire        func(ctx context.Context, key string, cost int) error
	Release        func(key string)
}

// waiting is a transport.Waiter.
type waiting interface {
	Wait(ctx context.Context) error
}

// keyed is a transport.KeyedWaiter.
type keyed interface {
	Wait(ctx context.Context, key string) error
}

// Of returns a Waiter for all keys.
func Of(w waiting) Waiter {
	u := Waiter{Is: w, One: true, Wait: func(ctx context.Context, _ string) error { return w.Wait(ctx) }}
	u.common(w)
	if w, ok := w.(interface {
		WaitN(context.Context, int) error
	}); ok {
		u.WaitN = func(ctx context.Context, _ string, cost int) error { return w.WaitN(ctx, cost) }
	}
	if w, ok := w.(interface{ LeaveNow(cost int) bool }); ok {
		u.LeaveNow = func(_ string, cost int) bool { return w.LeaveNow(cost) }
	}
	if w, ok := w.(interface{ Charge(cost int) }); ok {
		u.Charge = func(_ string, cost int) { w.Charge(cost) }
	}
	if w, ok := w.(interface{ HoldUntil(t time.Time) }); ok {
		u.Hold = func(_ string, t time.Time) error { w.HoldUntil(t); return nil }
	}
	if w, ok := w.(interface{ Held() (time.Time, bool) }); ok && u.Hold != nil {
		u.Held = func(string) (time.Time, bool) { return w.Held() }
	}
	if w, ok := w.(interface{ Delay() time.Duration }); ok {
		u.Delay = func(string) time.Duration { return w.Delay() }
	}
	if w, ok := w.(interface{ Scale(num, den int64) error }); ok {
		u.Scale = func(_ string, num, den int64) error { return w.Scale(num, den) }
		if u.CanScale == nil {
			u.CanScale = func() error { return w.Scale(1, 1) }
		}
	}
	if w, ok := w.(interface {
		DepartN(ctx context.Context, cost int, inFlight bool) (func(int) error, error)
		CanSettle() error
	}); ok {
		u.Depart = func(ctx context.Context, _ string, cost int, inFlight bool) (func(int) error, error) {
			return w.DepartN(ctx, cost, inFlight)
		}
		u.CanSettle = w.CanSettle
	}
	if w, ok := w.(interface {
		SetMaxInFlight(n int) error
		MaxInFlight() int
		Acquire(ctx context.Context, cost int) error
		Release()
	}); ok {
		u.SetMaxInFlight = w.SetMaxInFlight
		u.MaxInFlight = func(string) int { return w.MaxInFlight() }
		u.Acquire = func(ctx context.Context, _ string, cost int) error { return w.Acquire(ctx, cost) }
		u.Release = func(string) { w.Release() }
	}
	u.Wait, u.WaitN = limiter.Explain(w, u.Wait, u.WaitN)
	return u
}

// OfKeyed returns a Waiter for each key. Errors of charges are about keys that cannot be made:
// there is nothing to be done.
func OfKeyed(w keyed) Waiter {
	u := Waiter{Is: w, Wait: w.Wait}
	u.common(w)
	if w, ok := w.(interface {
		WaitN(context.Context, string, int) error
	}); ok {
		u.WaitN = w.WaitN
	}
	if w, ok := w.(interface{ LeaveNow(string, int) bool }); ok {
		u.LeaveNow = w.LeaveNow
	}
	if w, ok := w.(interface{ Charge(string, int) error }); ok {
		u.Charge = func(key string, cost int) { _ = w.Charge(key, cost) }
	}
	if w, ok := w.(interface{ HoldUntil(string, time.Time) error }); ok {
		u.Hold = w.HoldUntil
	}
	if w, ok := w.(interface {
		Held(string) (time.Time, bool)
	}); ok && u.Hold != nil {
		u.Held = w.Held
	}
	if w, ok := w.(interface{ HoldAccount(t time.Time) bool }); ok && u.Held != nil && w.HoldAccount(time.Time{}) {
		u.HoldAccount = w.HoldAccount // the zero Time holds nothing
	}
	if w, ok := w.(interface {
		Delay(key string) time.Duration
	}); ok {
		u.Delay = w.Delay
	}
	if w, ok := w.(interface {
		Scale(string, int64, int64) error
	}); ok {
		u.Scale = w.Scale
	}
	if w, ok := w.(interface {
		DepartN(ctx context.Context, key string, cost int, inFlight bool) (func(int) error, error)
		CanSettle() error
	}); ok {
		u.Depart, u.CanSettle = w.DepartN, w.CanSettle
	}
	if w, ok := w.(interface {
		SetMaxInFlight(n int) error
		MaxInFlight(key string) int
		Acquire(ctx context.Context, key string, cost int) error
		Release(key string)
	}); ok {
		u.SetMaxInFlight, u.MaxInFlight, u.Acquire, u.Release = w.SetMaxInFlight, w.MaxInFlight, w.Acquire, w.Release
	}
	return u
}

// common takes what is said alike with keys and without.
func (w *Waiter) common(is any) {
	if v, ok := is.(interface{ CanScale() error }); ok {
		w.CanScale = v.CanScale
	}
	if v, ok := is.(interface {
		WithArrival(context.Context, time.Time) context.Context
	}); ok {
		w.WithArrival = v.WithArrival
	}
}
