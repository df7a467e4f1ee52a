package redis_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// Four that share a limit get all of it, with many callers and with few, at rates at
// which a run is one slot and at rates at which it is hundreds.
func TestAllOfTheRateIsUsed(t *testing.T) {
	for _, perSecond := range []int64{20, 10_000} {
		for _, callers := range []int{2, 64} {
			t.Run(fmt.Sprintf("%d per second, %d callers", perSecond, callers), func(t *testing.T) {
				addr := realServer(t).Addr
				r := scheduler.PerSecond(perSecond)
				const span = time.Second
				ctx, cancel := context.WithTimeout(t.Context(), span)
				defer cancel()
				var all sync.WaitGroup
				var mu sync.Mutex
				var left []time.Time
				for range 4 {
					sched := newSchedule(t, client(t, addr), "load", r, 1)
					s := newShaper(t, sched, shaper.WithQueue(100_000))
					var each sync.WaitGroup
					for range callers {
						each.Go(func() {
							var mine []time.Time
							for s.Wait(ctx) == nil {
								mine = append(mine, time.Now())
							}
							mu.Lock()
							defer mu.Unlock()
							left = append(left, mine...)
						})
					}
					all.Go(func() { each.Wait(); t.Logf("%+v", sched.Stats()) })
				}
				all.Wait()
				sortTimes(left)
				assertConforms(t, left, r, 1, 60*ms)
				t.Logf("%d of %d left", len(left), perSecond)
				// How many leave at 10,000 per second is a matter of the machine.
				assert.Greater(t, len(left), int(min(perSecond, 1000))*8/10)
			})
		}
	}
}
