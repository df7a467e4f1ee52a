package shaper_test

import (
	"math/big"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/oracle"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// A fluidKey is one key of the fluid with limits of its own, by which the fluid is told when
// they forbid the key's head.
type fluidKey struct {
	*oracle.FluidKey
	limit     oracle.GCRA
	openAt    *big.Rat
	reopening bool // no call has left since openAt
	calls     []*fluidCall
	blocked   bool
	freeAt    *big.Rat // if it is blocked
}

type fluidCall struct {
	*oracle.FluidCall
	cancel func() bool
}

// locked makes a change of the fluid, once the keys that have become free by now are so.
func (f *fluidRun) locked(do func(now *big.Rat)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := at(f.now())
	for f.unblock(now) {
	}
	do(now)
}

// unblock tells the fluid of the keys that become free first, and by now.
func (f *fluidRun) unblock(now *big.Rat) bool {
	var first *big.Rat
	for _, k := range f.keys {
		if k.blocked && (first == nil || k.freeAt.Cmp(first) < 0) {
			first = k.freeAt
		}
	}
	if first == nil || first.Cmp(now) > 0 {
		return false
	}
	var keys []*oracle.FluidKey
	for _, k := range f.keys {
		if k.blocked && k.freeAt.Cmp(first) == 0 {
			k.blocked = false
			keys = append(keys, k.FluidKey)
		}
	}
	f.fluid.Unblock(first, keys...)
	return true
}

// look tells the fluid whether the key's own limits forbid its head.
func (f *fluidRun) look(k *fluidKey, now *big.Rat) {
	if len(k.calls) > 0 {
		f.forbid(k, now, k.calls[0].Cost)
	} else if k.blocked {
		k.blocked = false
		f.fluid.Unblock(now, k.FluidKey)
	}
}

func (f *fluidRun) forbid(k *fluidKey, now *big.Rat, cost int64) {
	free := now
	if k.openAt != nil && k.openAt.Cmp(free) > 0 {
		free = k.openAt
	}
	free = k.limit.Due(free, cost)
	switch was := k.blocked; {
	case free.Cmp(now) > 0:
		k.blocked, k.freeAt = true, free
		if !was {
			f.fluid.Block(now, k.FluidKey)
		}
	case was:
		k.blocked = false
		f.fluid.Unblock(now, k.FluidKey)
	}
}

// take charges the key's own limit.
func (k *fluidKey) take(now *big.Rat, cost int64) {
	if k.reopening && k.openAt.Cmp(now) <= 0 {
		k.reopening = false
		floor := new(big.Rat).Mul(k.limit.T, oracle.Instant(k.limit.Burst-min(cost, k.limit.Burst)))
		if floor.Add(floor, k.openAt); k.limit.TAT == nil || floor.Cmp(k.limit.TAT) > 0 {
			k.limit.TAT = floor
		}
	}
	k.limit.Leave(now, now, cost)
}

func (f *fluidRun) enqueue(key int) {
	k, cost := f.keys[key], 1+f.rng.Int64N(f.largest)
	c := &fluidCall{}
	f.locked(func(now *big.Rat) {
		if len(k.calls) == 0 {
			f.forbid(k, now, cost) // before it comes: the fluid would serve it at once
		}
		c.FluidCall = f.fluid.Arrive(now, k.FluidKey, cost, 0)
		k.calls = append(k.calls, c)
	})
	cancel, err := f.group.Enqueue(key, shaper.Call{Cost: int(cost)}, func(err error) {
		if err == nil {
			f.locked(func(now *big.Rat) { f.left(k, c, now) })
		}
	})
	require.NoError(f.t, err)
	c.cancel = cancel
}

func (f *fluidRun) left(k *fluidKey, c *fluidCall, now *big.Rat) {
	require.False(f.t, k.blocked, "the key allows it")
	if late := f.fluid.Leave(now, c.FluidCall); late.Cmp(f.worst) > 0 {
		f.worst = late
	}
	k.calls = slices.DeleteFunc(k.calls, func(other *fluidCall) bool { return other == c })
	k.take(now, c.Cost)
	f.look(k, now)
}

func (f *fluidRun) cancel(key int) {
	k := f.keys[key]
	var c *fluidCall
	f.locked(func(now *big.Rat) {
		if len(k.calls) == 0 {
			return
		}
		c = k.calls[min(f.rng.IntN(3), len(k.calls)-1)]
		f.fluid.Cancel(now, c.FluidCall)
		k.calls = slices.DeleteFunc(k.calls, func(other *fluidCall) bool { return other == c })
		f.look(k, now)
	})
	if c != nil {
		require.True(f.t, c.cancel())
	}
}

func (f *fluidRun) reweigh(key, weight int) {
	f.locked(func(now *big.Rat) {
		f.weights[key] = weight
		f.fluid.SetWeight(now, f.keys[key].FluidKey, int64(weight))
	})
	require.NoError(f.t, f.group.SetWeight(key, weight))
}

func (f *fluidRun) holdKey(key int, d time.Duration) {
	k := f.keys[key]
	f.locked(func(now *big.Rat) {
		if until := new(big.Rat).Add(now, at(d)); k.openAt == nil || until.Cmp(k.openAt) > 0 {
			k.openAt, k.reopening = until, true
			f.look(k, now)
		}
	})
	require.NoError(f.t, f.group.HoldUntil(key, time.Now().Add(d)))
}

func (f *fluidRun) hold(d time.Duration) {
	f.locked(func(now *big.Rat) { f.fluid.Hold(now, new(big.Rat).Add(now, at(d))) })
	f.account.HoldUntil(time.Now().Add(d))
}

func (f *fluidRun) charge(key int, cost int64) {
	k := f.keys[key]
	f.locked(func(now *big.Rat) {
		f.fluid.Charge(now, k.FluidKey, cost)
		k.take(now, cost)
		f.look(k, now)
	})
	require.NoError(f.t, f.group.Charge(key, int(cost)))
}

func (f *fluidRun) setRate(interval time.Duration) {
	f.locked(func(now *big.Rat) { f.fluid.SetInterval(now, at(interval)) })
	require.NoError(f.t, f.account.SetRate(scheduler.Per(1, interval)))
}
