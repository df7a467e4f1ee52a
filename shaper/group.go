package shaper

import (
	"context"
	"fmt"
	"hash/maphash"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

const defaultMaxKeys = 100_000

// A Group paces each key on its own, as a [Shaper] for each would: a partner's host, an
// API credential, a sender. Start with [NewGroup] and [Group.Wait].
//
// It keeps the promises of a Shaper for each key. Keys are made on first use and their
// number is bounded ([WithMaxKeys]); a new one beyond that is refused with
// [ErrTooManyKeys]. A key is forgotten when its TAT has passed, no call waits for it and
// nothing holds it: a forgotten key and a fresh one cannot be told apart. So a key that
// still owes anything is never forgotten, and forgetting resets nothing.
//
// A key for which no call waits costs its TAT and no more. Keys are forgotten while the
// Group is used, or when it is asked for their number; it has no goroutine for that, and
// no timer while no call waits, so it need not be closed.
//
// All methods are safe for concurrent use.
type Group[K comparable] struct {
	config  config
	time    timebase
	usual   *rateClass // of the rate of the Group
	rates   atomic.Pointer[rates[K]]
	weights func(K) int // nil: all weigh 1
	account *line       // that the keys are under; nil: each has a line of its own
	party   *party
	limits  func(K) (scheduler.Scheduler, error) // nil: a key has its rate and no other limit
	others  rateClasses
	// reviewed is when all keys were compared with what rates say, since the epoch.
	reviewed atomic.Int64

	seed   maphash.Seed
	shards []shard[K]
	keys   keyCount
	life   atomic.Int32 // a state

	inFlight   atomic.Int64 // how many calls of a key may be in flight; 0: no bound
	exceptions atomic.Bool  // there have been keys with a bound of their own

	pool  callPool  // of calls, for all keys
	spare sync.Pool // of *member, to be bound to keys
}

// NewGroup returns a Group in which each key has the rate. Its defaults are those of
// [New], and 100,000 keys.
//
// An invalid rate or option is an error that names the value; so is [WithLimits], as
// each key needs limits of its own, which [WithSchedules] makes.
func NewGroup[K comparable](r scheduler.Rate, opts ...Option) (*Group[K], error) {
	c, err := configure(opts)
	if err != nil {
		return nil, err
	}
	if len(c.limits) > 0 {
		return nil, fmt.Errorf("shaper: %d limits: keys of a Group cannot share them; WithSchedules makes one for each", len(c.limits))
	}
	g := &Group[K]{config: c, seed: maphash.MakeSeed()}
	g.keys.most = defaultMaxKeys
	if c.maxKeys != nil {
		g.keys.most = int64(*c.maxKeys)
	}
	if err := g.byKey(c); err != nil {
		return nil, err
	}
	g.config.rule = c.classRule()
	g.inFlight.Store(c.maxInFlight)
	g.pool.timed = c.timed()
	if g.usual, err = c.newClass(r); err != nil {
		return nil, err
	}
	g.time = newTimebase(c.clock, g.usual.fresh.Tolerance())
	g.shards = make([]shard[K], shardsFor(g.keys.most))
	for i := range g.shards {
		g.shards[i].group = g
	}
	if err := g.goUnder(); err != nil {
		return nil, err
	}
	return g, nil
}

// byKey takes the functions that tell something for each key.
func (g *Group[K]) byKey(c config) error {
	of, err := functionOf[K, func(K) scheduler.Rate]("rates", c.rates)
	if err != nil {
		return err
	}
	g.rates.Store(&rates[K]{of})
	if g.limits, err = functionOf[K, func(K) (scheduler.Scheduler, error)]("schedules", c.limitOf); err != nil {
		return err
	}
	g.weights, err = functionOf[K, func(K) int]("weights", c.weights)
	return err
}

// functionOf returns what an option was given, which may be nothing, as the function that the
// Group needs.
func functionOf[K, F any](what string, given any) (f F, err error) {
	if given == nil {
		return f, nil
	}
	f, ok := given.(F)
	switch {
	case !ok:
		return f, fmt.Errorf("shaper: %s by a %T: the keys are of type %T", what, given, *new(K))
	case reflect.ValueOf(given).IsNil():
		return f, fmt.Errorf("shaper: %s by a nil %T", what, given)
	}
	return f, nil
}

// Wait is [Shaper.Wait] for the key. A new key may be refused with [ErrTooManyKeys].
func (g *Group[K]) Wait(ctx context.Context, key K) error { return g.WaitN(ctx, key, 1) }

// WaitN is [Shaper.WaitN] for the key. A new key may be refused with [ErrTooManyKeys].
func (g *Group[K]) WaitN(ctx context.Context, key K, cost int) error {
	dead := ctx.Err() // a context is its user's code, so it is asked while no lock is held
	now := g.time.since()
	sh := g.shardOf(key)
	m, err := sh.enter(key, int64(cost), now, dead)
	if m == nil {
		return err
	}
	defer sh.release(key, m)
	return m.wait(ctx, now, ask{cost: int64(cost)})
}

// Acquire is [Shaper.Acquire] for the key, which is remembered until [Group.Release].
// [WithMaxInFlight] holds for each key. A new key may be refused with [ErrTooManyKeys].
func (g *Group[K]) Acquire(ctx context.Context, key K, cost int) error {
	if err := ctx.Err(); err != nil {
		return g.WaitN(ctx, key, cost) // counts it
	}
	sh := g.shardOf(key)
	m, err := sh.acquire(key, true)
	if err != nil {
		return sh.refuse(err, cost)
	}
	kept := false
	defer func() { // a context may panic
		if !kept {
			sh.release(key, m)
		}
	}()
	err = m.wait(ctx, g.time.since(), ask{cost: int64(cost), place: true})
	kept = err == nil
	return err
}

// Release is [Shaper.Release] for the key.
func (g *Group[K]) Release(key K) {
	sh := g.shardOf(key)
	m := sh.find(key)
	if m == nil {
		panic("shaper: Release without Acquire")
	}
	defer sh.release(key, m)
	m.flow.release()
	sh.release(key, m) // what Acquire has kept
}

// SetMaxInFlight is [Shaper.SetMaxInFlight] for every key, now and later.
func (g *Group[K]) SetMaxInFlight(n int) error {
	g.made()
	if err := checkInFlight(n); err != nil {
		return err
	}
	g.inFlight.Store(int64(n)) // what is bound from here on has it
	for i := range g.shards {
		// A flow may be another key's by now, or none's: the bound is the same for all.
		for _, f := range g.shards[i].flows() {
			f.boundPlaces(int64(n))
		}
	}
	return nil
}

// MaxInFlight returns how many calls of the key may be in flight, by its own bound and that of
// the account; 0 if there is none. Asking makes no key.
func (g *Group[K]) MaxInFlight(key K) int {
	g.made()
	most := g.inFlight.Load()
	if g.exceptions.Load() {
		g.look(key, func(f *flow) { most = f.maxInFlight() })
	}
	if g.account != nil {
		most = lower(lower(most, g.account.inFlight.Load()), g.party.places.most)
	}
	return int(most)
}

// lower returns the lower of two bounds, of which 0 is none.
func lower(a, b int64) int64 {
	if a == 0 || 0 < b && b < a {
		return b
	}
	return a
}

// Allow is [Shaper.Allow] for the key. It reports false for a new key beyond the bound.
func (g *Group[K]) Allow(key K) bool { return g.AllowN(key, 1) }

// AllowN is [Shaper.AllowN] for the key. It reports false for a new key beyond the bound.
func (g *Group[K]) AllowN(key K, cost int) bool {
	now := g.time.since()
	sh := g.shardOf(key)
	m, err := sh.enter(key, int64(cost), now, nil)
	if m == nil {
		return err == nil
	}
	defer sh.release(key, m)
	a := ask{cost: int64(cost)}
	if err := m.weigh(&a); err != nil {
		_ = sh.refuse(err, cost) // counts it
		return false
	}
	return m.flow.allow(now, a)
}

// Delay is [Shaper.Delay] for the key. Asking makes no key.
func (g *Group[K]) Delay(key K) time.Duration { return g.DelayOf(key, Call{Class: maxClasses}) }

// DelayOf is [Shaper.DelayOf] for the key. Asking makes no key.
func (g *Group[K]) DelayOf(key K, c Call) (delay time.Duration) {
	g.made()
	a, known := c.ask(g.config.rule), false
	g.look(key, func(f *flow) { delay = f.delay(a); known = true })
	if !known {
		return g.delayOfNew(key, a.cost)
	}
	return delay
}

// HoldUntil is [Shaper.HoldUntil] for the key, which is remembered until then. The error
// is about a new key that cannot be made.
func (g *Group[K]) HoldUntil(key K, t time.Time) error {
	return g.change(key, func(f *flow) error { f.holdUntil(t); return nil })
}

// Pause is [Shaper.Pause] for the key, which is remembered until [Group.Resume]. The
// error is about a new key that cannot be made.
func (g *Group[K]) Pause(key K) error {
	return g.change(key, func(f *flow) error { f.pause(); return nil })
}

// Resume is [Shaper.Resume] for the key. A key that is not remembered is neither paused
// nor held.
func (g *Group[K]) Resume(key K) { g.look(key, (*flow).resume) }

// Charge is [Shaper.Charge] for the key. The error is about a new key that cannot be
// made.
func (g *Group[K]) Charge(key K, cost int) error {
	return g.change(key, func(f *flow) error { f.charge(int64(cost)); return nil })
}

// Scale is [Shaper.Scale] for the key, which is remembered until it has all of its rate
// again.
func (g *Group[K]) Scale(key K, num, den int64) error {
	return g.change(key, func(f *flow) error { return f.scale(num, den) })
}

// CanScale is [Shaper.CanScale] for all keys. The rate of a key can always be scaled.
func (g *Group[K]) CanScale() error {
	g.made()
	return nil
}

// LeaveNow is [Shaper.LeaveNow] for the key.
func (g *Group[K]) LeaveNow(key K, cost int) bool {
	now := g.time.since()
	return g.shardOf(key).leaveNow(key, int64(cost), now)
}

// change does something to a key, which it makes if need be.
func (g *Group[K]) change(key K, do func(*flow) error) error {
	sh := g.shardOf(key)
	m, err := sh.acquire(key, false)
	if err != nil {
		return err
	}
	defer sh.release(key, m)
	var a ask
	if err := m.weigh(&a); err != nil {
		return err
	}
	m.flow.weigh(a.weight)
	return do(m.flow)
}

// look does something with a key, if it is remembered.
func (g *Group[K]) look(key K, do func(*flow)) {
	sh := g.shardOf(key)
	if m := sh.find(key); m != nil {
		defer sh.release(key, m)
		do(m.flow)
	}
}
