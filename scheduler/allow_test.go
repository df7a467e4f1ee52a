package scheduler_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/scheduler"
)

func TestAllowTellsTheExactWait(t *testing.T) {
	for _, rate := range []scheduler.Rate{scheduler.PerSecond(3), scheduler.PerSecond(10), scheduler.PerMinute(7)} {
		g := newGCRA(t, rate, 2)
		now := origin
		for range 2 {
			ok, wait := scheduler.Allow(g, now, 1)
			assert.True(t, ok)
			assert.Zero(t, wait)
		}
		ok, wait := scheduler.Allow(g, now, 1)
		assert.False(t, ok)
		assert.Equal(t, rate.Interval(), wait)

		early, left := scheduler.Allow(g, now.Add(wait-1), 1)
		assert.False(t, early, "1 ns before it")
		assert.Equal(t, time.Duration(1), left)
		ok, _ = scheduler.Allow(g, now.Add(wait), 1)
		assert.True(t, ok, "after it")
	}
}

func TestAllowRefusesWhatCanNeverLeave(t *testing.T) {
	g := newGCRA(t, scheduler.PerSecond(10), 1)
	for _, n := range []int64{0, -1, math.MinInt64} {
		ok, wait := scheduler.Allow(g, origin, n)
		assert.False(t, ok)
		assert.Equal(t, time.Duration(math.MaxInt64), wait)
	}
	ok, _ := scheduler.Allow(g, origin, 1)
	assert.True(t, ok, "nothing was charged")
}

// At 3/s on a clock of milliseconds the boundary lies at 334 ms, not at 333.
func TestAllowOnAMillisecondClock(t *testing.T) {
	g := newGCRA(t, scheduler.PerSecond(3), 1)
	scheduler.Allow(g, origin, 1)
	early, _ := scheduler.Allow(g, origin.Add(333*time.Millisecond), 1)
	assert.False(t, early)
	ok, _ := scheduler.Allow(g, origin.Add(334*time.Millisecond), 1)
	assert.True(t, ok)
}
