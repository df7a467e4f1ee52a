package scheduler_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
)

func TestMust(t *testing.T) {
	assert.Equal(t, scheduler.PerSecond(3), scheduler.Must(scheduler.ParseRate("3/s")))
	assert.PanicsWithError(t, "scheduler: burst 0: must be at least 1", func() {
		scheduler.Must(scheduler.NewGCRA(scheduler.PerSecond(1), 0))
	})
}

// What is owed, in units, is taken over by a schedule of another rate and burst.
func TestTakeOver(t *testing.T) {
	now := time.Unix(1e9, 0)
	from := scheduler.Must(scheduler.NewGCRA(scheduler.PerSecond(1), 5))
	from.Commit(now, now, 8)
	g := scheduler.Must(scheduler.NewGCRA(scheduler.PerSecond(10), 2, scheduler.WithTolerance(time.Second)))
	require.NoError(t, g.TakeOver(now, from))
	assert.Equal(t, scheduler.PerSecond(10), g.Rate())
	assert.EqualValues(t, 2, g.Burst())
	assert.Equal(t, time.Second, g.Tolerance())
	assert.Equal(t, 800*time.Millisecond, g.TAT().Sub(now))
	assert.Equal(t, 8*time.Second, from.TAT().Sub(now), "unchanged")

	// The clock was set back by an hour: TAT is waited for, and no longer.
	back := now.Add(-time.Hour)
	require.NoError(t, g.TakeOver(back, from))
	assert.Equal(t, back.Add((time.Hour+8*time.Second)/10-100*time.Millisecond), g.Next(back, 0, 1))

	var zero scheduler.GCRA
	assert.Panics(t, func() { _ = zero.TakeOver(now, from) })
}

// A schedule that was shifted answers as it did before, but later.
func TestShift(t *testing.T) {
	made := []func() scheduler.Scheduler{
		func() scheduler.Scheduler { return scheduler.Must(scheduler.NewGCRA(scheduler.PerSecond(3), 4)) },
		func() scheduler.Scheduler { return scheduler.Must(scheduler.NewTokenBucket(scheduler.PerSecond(3), 4)) },
		func() scheduler.Scheduler { return scheduler.Must(scheduler.NewLeakyBucket(scheduler.PerSecond(3), 4)) },
		func() scheduler.Scheduler { return scheduler.Must(scheduler.NewSlidingLog(4, time.Second)) },
	}
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 3))
		fresh := made[r.IntN(len(made))]
		a, b := fresh(), fresh()
		by := time.Duration(r.Int64N(int64(20*time.Hour))) - 10*time.Hour
		now := time.Unix(1e9, 0)
		for range 20 {
			cost := r.Int64N(4) + 1
			due := a.Next(now, 0, cost)
			a.Commit(due, due, cost)
			b.Commit(due, due, cost)
			now = due.Add(time.Duration(r.Int64N(int64(time.Second))))
		}
		b.(interface{ Shift(time.Duration) }).Shift(by)
		for range 5 {
			require.Equal(t, a.Next(now, 2, 3).Add(by), b.Next(now.Add(by), 2, 3), "NewPCG(%d, 3)", seed)
			now = now.Add(time.Second / 5)
		}
	}
}
