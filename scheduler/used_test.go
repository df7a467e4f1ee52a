package scheduler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
)

// A count that the partner tells is the count, whether it is more than ours or less.
func TestSetUsed(t *testing.T) {
	now := origin.Add(300 * time.Millisecond)
	for name, build := range map[string]func() scheduler.Scheduler{
		"GCRA":        func() scheduler.Scheduler { return newGCRA(t, scheduler.PerSecond(3), 10) },
		"TokenBucket": func() scheduler.Scheduler { return newTokenBucket(t, scheduler.PerSecond(3), 10) },
		"LeakyBucket": func() scheduler.Scheduler { return newLeakyBucket(t, scheduler.PerSecond(3), 10) },
	} {
		for _, used := range []int64{0, 1, 4, 10, 13} {
			s := build()
			s.Commit(origin, origin, 4)
			require.NoError(t, s.(scheduler.UsedSetter).SetUsed(now, used), name)
			for _, n := range []int64{1, 5, 10} {
				want := now.Add(scheduler.PerSecond(3).For(used - (10 - n)))
				assert.Equal(t, want, s.Next(now, 0, n), "%s: %d used, %d more", name, used, n)
			}
		}
		s := build()
		assert.Error(t, s.(scheduler.UsedSetter).SetUsed(now, -1))
		require.NoError(t, s.(scheduler.RateSetter).SetRate(now, scheduler.Unlimited))
		assert.ErrorContains(t, s.(scheduler.UsedSetter).SetUsed(now, 1), "unlimited")
	}
	f := newFixedWindow(t, 10, time.Minute)
	f.Commit(origin, origin, 4)
	require.NoError(t, f.SetUsed(now, 9))
	assert.Equal(t, now, f.Next(now, 0, 1))
	assert.Equal(t, origin.Add(time.Minute), f.Next(now, 0, 2))
	require.NoError(t, f.SetUsed(now, 0))
	assert.Equal(t, now, f.Next(now, 0, 10))
	require.NoError(t, f.SetUsed(origin.Add(time.Minute), 10))
	assert.Equal(t, origin.Add(2*time.Minute), f.Next(now, 0, 1), "it is about the window of the time it is told at")
	for _, s := range []scheduler.Scheduler{newSlidingLog(t, 1, time.Second), newSlidingCounter(t, 1, time.Second)} {
		_, ok := s.(scheduler.UsedSetter)
		assert.False(t, ok, "%T", s)
	}
}

// What is settled after the count was told changes it by the difference.
func TestSettleAfterSetUsed(t *testing.T) {
	for name, s := range map[string]interface {
		scheduler.Scheduler
		scheduler.Settler
		scheduler.UsedSetter
	}{
		"GCRA":        newGCRA(t, scheduler.PerSecond(1), 10),
		"TokenBucket": newTokenBucket(t, scheduler.PerSecond(1), 10),
		"LeakyBucket": newLeakyBucket(t, scheduler.PerSecond(1), 10),
		"FixedWindow": newFixedWindow(t, 10, time.Hour),
	} {
		s.CommitUnsettled(1, origin, origin, 6)
		s.CommitUnsettled(2, origin, origin, 1)
		require.NoError(t, s.SetUsed(origin, 9))
		require.NoError(t, s.Settle(1, 2))
		assert.Equal(t, origin, s.Next(origin, 0, 5), name)
		assert.True(t, s.Next(origin, 0, 6).After(origin), name)
		require.NoError(t, s.SetUsed(origin, 0))
		require.NoError(t, s.Settle(2, 0))
		assert.Equal(t, origin, s.Next(origin, 0, 10), name)
		s.Commit(origin, origin, 10)
		assert.True(t, s.Next(origin, 0, 1).After(origin), "%s: no more than the limit", name)
	}
}

// A limit that rises counts what left beyond the old one, too.
func TestSlidingLogRemembersBeyondItsLimit(t *testing.T) {
	l := newSlidingLog(t, 2, 10*time.Second)
	l.Commit(origin, origin, 3)
	l.Commit(origin.Add(time.Second), origin.Add(time.Second), 3)
	require.NoError(t, l.SetLimit(origin.Add(time.Second), 7))
	assert.Equal(t, origin.Add(time.Second), l.Next(origin.Add(time.Second), 0, 1))
	assert.Equal(t, origin.Add(10*time.Second), l.Next(origin.Add(time.Second), 0, 2))
	assert.Equal(t, origin.Add(11*time.Second), l.Next(origin.Add(time.Second), 0, 5))
}
