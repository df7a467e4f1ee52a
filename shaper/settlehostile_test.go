package shaper_test

import (
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// No cost that a call turns out to have had breaks a line whose keys have shares, whatever is said
// at once.
func TestSettleExtremesOfShares(t *testing.T) {
	account := newShaper(t, scheduler.PerSecond(1_000_000), shaper.WithBurst(1<<20), shaper.WithQueue(1<<20))
	g, err := shaper.NewGroup[int](scheduler.Unlimited, shaper.Under(account), shaper.WithWeights(func(k int) int { return 1 + k }))
	require.NoError(t, err)
	var calls sync.WaitGroup
	for k := range 4 {
		calls.Go(func() {
			for i := range 200 {
				d, err := g.Depart(t.Context(), k, shaper.Call{Cost: 1 + i%100})
				if !assert.NoError(t, err) {
					return
				}
				assert.Error(t, d.Settle(math.MinInt))
				assert.NoError(t, d.Settle(i%300))
				assert.ErrorIs(t, d.Settle(1), shaper.ErrFinal)
			}
		})
	}
	calls.Wait()
	conserved(t, account)
	for _, actual := range []int{math.MaxInt, math.MaxInt32, 0} {
		d, err := g.Depart(t.Context(), 0, shaper.Call{Cost: 1})
		require.NoError(t, err)
		require.NoError(t, d.Settle(actual))
		require.NoError(t, account.SetUsed(0))
	}
	assert.True(t, g.Allow(1))
}
