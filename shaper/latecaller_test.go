package shaper_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// A caller alone that is woken late, as timers of a millisecond wake all, comes back late.
// The rate does not suffer by it: without that rule this caller gets less than a fifth of it.
func TestOneCallerGetsTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := lateClock(func() time.Duration { return ms })
		s := newShaper(t, scheduler.PerSecond(10_000), shaper.WithClock(late))
		began := time.Now()
		for range 10_001 {
			require.NoError(t, s.Wait(t.Context()))
		}
		assert.GreaterOrEqual(t, time.Since(began), time.Second)
		assert.LessOrEqual(t, time.Since(began), time.Second+ms)
	})
}
