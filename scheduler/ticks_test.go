package scheduler_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/trial"
	"github.com/sluice-go/sluice/scheduler"
)

// TestTicksDecideAsGCRA lets both decide thousands of times. Every now and then TAT
// moves from one to the other, as between a fast path and a line.
func TestTicksDecideAsGCRA(t *testing.T) {
	trial.Run(t, 200, func(t *testing.T, rng *rand.Rand) {
		rate := scheduler.Per(1+rng.Int64N(2000), []time.Duration{time.Second, time.Minute, 7 * time.Hour}[rng.IntN(3)])
		burst := 1 + rng.Int64N(2)*rng.Int64N(20)
		g := newGCRA(t, rate, burst)
		k, ok := g.Ticks()
		require.True(t, ok, "%v", rate)
		tat, ok := k.Pack(g, origin)
		require.True(t, ok)
		require.Equal(t, k.Fresh(), tat)

		start := origin
		now := time.Duration(0)
		for range 200 {
			now += time.Duration(rng.Int64N(int64(2 * rate.Interval())))
			if rng.IntN(2) == 0 { // the nanosecond in which TAT lies
				now = max(now, g.Next(start.Add(now), burst-1, 1).Sub(start))
			}
			switch rng.IntN(12) {
			case 0: // the origin moves
				by := time.Duration(rng.Int64N(int64(now) + 1))
				tat, start, now = k.Advance(tat, by), start.Add(by), now-by
			case 1: // through the other form and back
				other := newGCRA(t, rate, burst)
				k.Unpack(other, start, tat)
				for _, ahead := range []int64{0, 1, 5} {
					at := start.Add(now)
					require.Equal(t, g.Next(at, ahead, 1), other.Next(at, ahead, 1), "rate %v burst %d", rate, burst)
				}
				if tat, ok = k.Pack(other, start); !assert.True(t, ok) {
					return
				}
			}
			n := 1 + rng.Int64N(2)*rng.Int64N(2*burst)
			at := start.Add(now)
			want := !g.Next(at, 0, n).After(at)
			after, got := k.Leave(tat, now, n)
			require.Equal(t, want, got, "rate %v burst %d: %d units at %v", rate, burst, n, now)
			if got {
				g.Commit(at, at, n)
			}
			tat = after
			if now > 0 {
				// Nothing is owed exactly if a fresh schedule would say the same.
				fresh := newGCRA(t, rate, burst)
				assert.Equal(t, fresh.Next(at, 3*burst, 1).Equal(g.Next(at, 3*burst, 1)), now >= k.DryAt(tat))
			}
		}
	})
}

// A time that is stale because another decision overtook it mints no capacity.
func TestTicksStaleTime(t *testing.T) {
	k, ok := newGCRA(t, scheduler.PerSecond(10), 2).Ticks()
	require.True(t, ok)
	tat, left := k.Fresh(), 0
	for _, since := range []time.Duration{time.Second, 900 * time.Millisecond, 0, time.Second} {
		var ok bool
		if tat, ok = k.Leave(tat, since, 1); ok {
			left++
		}
	}
	assert.Equal(t, 2, left)
	_, ok = k.Leave(tat, 1100*time.Millisecond-1, 1)
	assert.False(t, ok)
	_, ok = k.Leave(tat, 1100*time.Millisecond, 1)
	assert.True(t, ok)
}

func TestTicksAreRefused(t *testing.T) {
	for name, g := range map[string]*scheduler.GCRA{
		"a fraction too fine":         newGCRA(t, scheduler.Per(1<<20+1, time.Second), 1),
		"an interval too long":        newGCRA(t, scheduler.Per(999_983, math.MaxInt64), 1),
		"a burst that takes too long": newGCRA(t, scheduler.PerDay(1), 40_000),
	} {
		_, ok := g.Ticks()
		assert.False(t, ok, name)
	}
	g := newGCRA(t, scheduler.PerSecond(3), 4)
	k, _ := g.Ticks()
	for _, n := range []int64{0, -1, math.MinInt64, math.MaxInt64, math.MaxInt64 / 4} {
		_, ok := k.Leave(k.Fresh(), time.Hour, n)
		assert.False(t, ok, "%d units", n)
	}
	for _, since := range []time.Duration{-1, math.MinInt64, k.Horizon() + 1, math.MaxInt64} {
		_, ok := k.Leave(k.Fresh(), since, 1)
		assert.False(t, ok, "%v", since)
	}
	tat, ok := k.Leave(k.Fresh(), k.Horizon(), 1<<60/1_000_000_000)
	assert.True(t, ok)
	assert.Positive(t, tat)

	require.NoError(t, g.SetRate(origin, scheduler.PerSecond(4)))
	_, ok = k.Pack(g, origin)
	assert.False(t, ok, "the rate has changed")
}

// A rate change in mid-interval may leave a fraction too fine for ticks. It is gone with
// what was owed.
func TestTicksComeBack(t *testing.T) {
	g := newGCRA(t, scheduler.Per(999_983, time.Second+1), 1)
	g.Commit(origin, origin, 1)
	require.NoError(t, g.SetRate(origin.Add(1), scheduler.PerSecond(999_979)))
	_, ok := g.Ticks()
	require.False(t, ok)
	g.Commit(origin.Add(time.Second), origin.Add(time.Second), 1)
	_, ok = g.Ticks()
	assert.True(t, ok)
}

func TestTicksUnlimited(t *testing.T) {
	k, ok := newGCRA(t, scheduler.Unlimited, 1).Ticks()
	require.True(t, ok)
	tat, ok := k.Leave(k.Fresh(), 5, math.MaxInt64)
	assert.True(t, ok)
	assert.Equal(t, k.Fresh(), tat)
	assert.Negative(t, k.DryAt(tat))
}
