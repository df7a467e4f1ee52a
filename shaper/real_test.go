package shaper_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/scheduler"
)

// A caller alone who is woken late, as everybody is by timers of a millisecond, comes
// back late. The rate does not suffer by it: without that rule he gets a fifth of it.
func TestOneCallerGetsTheRate(t *testing.T) {
	const perSecond = 10_000
	const during = 150 * time.Millisecond
	best := 0.0
	for range 5 { // a busy machine may be late beyond the tolerance
		s := newShaper(t, scheduler.PerSecond(perSecond))
		began, left := time.Now(), 0.0
		for ; time.Since(began) < during; left++ {
			assert.NoError(t, s.Wait(t.Context()))
		}
		if best = max(best, left/time.Since(began).Seconds()); best > perSecond*0.8 {
			return
		}
	}
	assert.Greater(t, best, perSecond*0.8)
}
