package shaper

import (
	"context"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// A Key is one key of a [Group], with the methods of a [Shaper]: it may be handed on where a
// Waiter is wanted, to a transport for one. Its methods are those of the Group for the key,
// so it holds nothing, and the key is forgotten as any other.
type Key[K comparable] struct {
	group *Group[K]
	key   K
}

// Of returns a key of the Group. It makes none: the first call does.
func (g *Group[K]) Of(key K) *Key[K] {
	g.made()
	return &Key[K]{g, key}
}

// Wait is [Group.Wait] for the key.
func (k *Key[K]) Wait(ctx context.Context) error { return k.in().Wait(ctx, k.key) }

// WaitN is [Group.WaitN] for the key.
func (k *Key[K]) WaitN(ctx context.Context, cost int) error { return k.in().WaitN(ctx, k.key, cost) }

// Allow is [Group.Allow] for the key.
func (k *Key[K]) Allow() bool { return k.in().Allow(k.key) }

// AllowN is [Group.AllowN] for the key.
func (k *Key[K]) AllowN(cost int) bool { return k.in().AllowN(k.key, cost) }

// LeaveNow is [Group.LeaveNow] for the key.
func (k *Key[K]) LeaveNow(cost int) bool { return k.in().LeaveNow(k.key, cost) }

// Enqueue is [Group.Enqueue] for the key.
func (k *Key[K]) Enqueue(c Call, done func(err error)) (cancel func() bool, err error) {
	return k.in().Enqueue(k.key, c, done)
}

// Acquire is [Group.Acquire] for the key.
func (k *Key[K]) Acquire(ctx context.Context, cost int) error {
	return k.in().Acquire(ctx, k.key, cost)
}

// Release is [Group.Release] for the key.
func (k *Key[K]) Release() { k.in().Release(k.key) }

// SetMaxInFlight is [Shaper.SetMaxInFlight] for the key, which is remembered for good. The
// error may be about a key that cannot be made. [Group.SetMaxInFlight] changes it again.
func (k *Key[K]) SetMaxInFlight(n int) error {
	g := k.in()
	if err := checkInFlight(n); err != nil {
		return err
	}
	g.exceptions.Store(true)
	return g.change(k.key, func(f *flow) error {
		f.keep()
		f.boundPlaces(int64(n))
		return nil
	})
}

// MaxInFlight is [Group.MaxInFlight] for the key.
func (k *Key[K]) MaxInFlight() int { return k.in().MaxInFlight(k.key) }

// Do is [Shaper.Do] for the key.
func (k *Key[K]) Do(ctx context.Context, f func(context.Context) error) error {
	if err := k.Acquire(ctx, 1); err != nil {
		return err
	}
	defer k.Release()
	return f(ctx)
}

// Delay is [Group.Delay] for the key.
func (k *Key[K]) Delay() time.Duration { return k.in().Delay(k.key) }

// DelayOf is [Group.DelayOf] for the key.
func (k *Key[K]) DelayOf(c Call) time.Duration { return k.in().DelayOf(k.key, c) }

// Charge is [Group.Charge] for the key. What a key cannot be made for is not charged.
func (k *Key[K]) Charge(cost int) { _ = k.in().Charge(k.key, cost) }

// HoldUntil is [Group.HoldUntil] for the key.
func (k *Key[K]) HoldUntil(t time.Time) { _ = k.in().HoldUntil(k.key, t) }

// Pause is [Group.Pause] for the key.
func (k *Key[K]) Pause() error { return k.in().Pause(k.key) }

// Resume is [Group.Resume] for the key.
func (k *Key[K]) Resume() { k.in().Resume(k.key) }

// SetRate is [Group.SetRate] for the key.
func (k *Key[K]) SetRate(r scheduler.Rate) error { return k.in().SetRate(k.key, r) }

// Scale is [Group.Scale] for the key.
func (k *Key[K]) Scale(num, den int64) error { return k.in().Scale(k.key, num, den) }

// CanScale is [Group.CanScale].
func (k *Key[K]) CanScale() error { return k.in().CanScale() }

// SetWeight is [Group.SetWeight] for the key.
func (k *Key[K]) SetWeight(weight int) error { return k.in().SetWeight(k.key, weight) }
