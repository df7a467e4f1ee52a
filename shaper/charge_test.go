package shaper_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

func TestChargeMovesTheLineBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10))
		r := newRecorder()
		for range 3 {
			r.wait(t.Context(), s)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 450*ms)
		defer cancel()
		late := r.wait(ctx, s) // would leave at 300 ms
		r.until(50 * ms)
		s.Charge(2)
		synctest.Wait()
		assert.ErrorIs(t, late.err, shaper.ErrDeadline)
		assert.Equal(t, 50*ms, late.at)
		pass(time.Minute)
		assert.Equal(t, []time.Duration{0, 300 * ms, 400 * ms}, r.left())
		assert.EqualValues(t, 4, s.Stats().Left)
		conserved(t, s)
	})
}

func TestChargeWhileNoCallWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10))
		s.Charge(3)
		s.Charge(0)
		s.Charge(-5)
		assert.Equal(t, 300*ms, s.Delay())
		require.NoError(t, s.Close())
		s.Charge(1)
		assert.EqualValues(t, 2, s.Stats().Left)
		conserved(t, s)
	})
}
