package shaper_test

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// Callers that leave one key go on to others while the one that has let them leave is not
// done yet. That stops the timer of no call.
func TestNoCallSleepsForEver(t *testing.T) {
	g := newGroup[int](t, scheduler.PerSecond(1000), shaper.WithQueue(1000))
	var lost atomic.Int64
	for end := time.Now().Add(300 * ms); time.Now().Before(end); {
		require.NoError(t, g.SetRate(0, scheduler.PerHour(10)))
		var crowd sync.WaitGroup
		for key := range 100 {
			crowd.Go(func() {
				_ = g.Wait(context.Background(), 0)
				g.Allow(1 + key)
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				defer cancel()
				if g.Wait(ctx, 1+key) != nil { // it is due in a millisecond
					lost.Add(1)
				}
			})
		}
		awaitWaiting(func() int64 { return g.Stats().Waiting }, 50)
		require.NoError(t, g.SetRate(0, scheduler.Unlimited))
		crowd.Wait()
	}
	assert.Zero(t, lost.Load())
}

// The time that the function of the rates takes counts for no key twice.
func TestSlowRatesOpenNoBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup[int](t, scheduler.PerSecond(1), shaper.WithRates(func(int) scheduler.Rate {
			time.Sleep(100 * ms)
			return scheduler.PerSecond(100)
		}))
		require.NoError(t, g.Wait(t.Context(), 1))
		assert.False(t, g.Allow(1))
		time.Sleep(10 * ms)
		assert.True(t, g.Allow(1))
	})
}

// A function of the user's that panics, or uses the Group, locks no key out.
func TestRatesMayPanicAndCallBack(t *testing.T) {
	var g *shaper.Group[int]
	nested := false
	g = newGroup[int](t, scheduler.PerSecond(1), shaper.WithRates(func(key int) scheduler.Rate {
		switch key {
		case 1:
			panic("no rate")
		case 2:
			assert.True(t, g.Allow(3))
		case 4:
			if !nested {
				nested = true
				g.Allow(4) // makes the key meanwhile
			}
		}
		return scheduler.PerHour(1)
	}), shaper.WithMaxKeys(4))
	assert.PanicsWithValue(t, "no rate", func() { g.Allow(1) })
	assert.True(t, g.Allow(2))
	assert.Equal(t, 2, g.Len())
	assert.False(t, g.Allow(4), "it has left inside")
	assert.Equal(t, 3, g.Len())
	assert.True(t, g.Allow(5))
	nested = false
	assert.False(t, g.Allow(4))
	assert.False(t, g.Allow(6), "the fifth")
	conservedGroup(t, g)
}

// What takes longer than a Duration can tell is owed all the same.
func TestKeyThatOwesCenturies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup[string](t, scheduler.PerDay(1))
		require.NoError(t, g.Charge("a", 200_000))
		require.NoError(t, g.WaitN(t.Context(), "b", math.MaxInt))
		time.Sleep(time.Hour)
		assert.Equal(t, 2, g.Len())
		assert.False(t, g.Allow("a"))
		assert.False(t, g.Allow("b"))
	})
}

func TestClosedGroupTakesNoCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup[string](t, scheduler.PerSecond(10))
		require.NoError(t, g.Close())
		assert.ErrorIs(t, g.Wait(t.Context(), "k"), shaper.ErrClosed)
		assert.ErrorIs(t, g.Acquire(t.Context(), "k", 1), shaper.ErrClosed)
		assert.NoError(t, g.Charge("k", 1), "what has left has left")
		assert.EqualValues(t, 1, g.Stats().Left)
		conservedGroup(t, g)
	})
}

// A rate in other words is the same rate.
func TestKeyWithItsOwnRateIsNotSpecial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup[string](t, scheduler.PerSecond(10))
		require.NoError(t, g.SetRate("a", scheduler.PerMinute(600)))
		require.NoError(t, g.Scale("b", 5, 5))
		assert.Zero(t, g.Len())
	})
}

// After hours without a call, fine fractions of a nanosecond are told as before.
func TestKeyReleasedAfterHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup[string](t, scheduler.PerSecond(999_983))
		require.NoError(t, g.Acquire(t.Context(), "a", 1))
		time.Sleep(5 * time.Hour)
		require.NoError(t, g.Wait(t.Context(), "a"))
		g.Release("a")
		assert.Equal(t, 1, g.Len())
		time.Sleep(1010)
		assert.Zero(t, g.Len())
	})
}
