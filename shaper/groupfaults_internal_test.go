package shaper

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
)

// A caller that has read the clock and was then held up finds the key forgotten. What it
// reads is no reason for a unit more.
func TestStaleTimeAfterForgetting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := NewGroup[int](scheduler.PerSecond(10), WithTolerance(0))
		require.NoError(t, err)
		require.NoError(t, g.Wait(t.Context(), 1))
		time.Sleep(99 * time.Millisecond)
		stale := g.time.since()
		time.Sleep(time.Millisecond)
		require.Zero(t, g.Len())
		m, err := g.shardOf(1).enter(1, 1, stale, nil)
		require.NoError(t, err)
		require.Nil(t, m)
		time.Sleep(99 * time.Millisecond)
		assert.False(t, g.Allow(1))
		time.Sleep(time.Millisecond)
		assert.True(t, g.Allow(1))
	})
}
