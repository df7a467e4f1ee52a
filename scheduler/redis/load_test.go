package redis_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/redis"
	"github.com/sluice-go/sluice/shaper"
)

func TestFourAtOnceLoad(t *testing.T) {
	for _, perSecond := range []int64{20, 100, 1000, 10000, 50000} {
		for _, load := range []string{"full", "half"} {
			t.Run(fmt.Sprintf("%d/%s", perSecond, load), func(t *testing.T) {
				addr := realServer(t).Addr
				r := scheduler.PerSecond(perSecond)
				const span = 2 * time.Second
				ctx, cancel := context.WithTimeout(t.Context(), span)
				defer cancel()
				var all sync.WaitGroup
				var mu sync.Mutex
				var left []time.Time
				counts := make([]int, 4)
				for i := range 4 {
					sched := newSchedule(t, client(t, addr), "load", r, 1,
						redis.WithOnChange(func(s redis.State) { t.Log(s.Up, s.Err) }))
					s := newShaper(t, sched, shaper.WithQueue(100000))
					var each sync.WaitGroup
					workers := 64
					if load == "half" {
						workers = 1
					}
					for range workers {
						each.Go(func() {
							var mine []time.Time
							tick := time.NewTicker(max(8*r.Interval(), 1))
							defer tick.Stop()
							for s.Wait(ctx) == nil {
								mine = append(mine, time.Now())
								if load == "half" {
									<-tick.C
								}
							}
							mu.Lock()
							defer mu.Unlock()
							left = append(left, mine...)
							counts[i] += len(mine)
						})
					}
					all.Go(func() { each.Wait(); t.Logf("%+v", sched.Stats()) })
				}
				all.Wait()
				t.Logf("left %d of %d, shares %v", len(left), int64(span.Seconds())*perSecond, counts)
				sortTimes(left)
				assertConforms(t, left, r, 1, 15*ms)
				assert.NotEmpty(t, left)
			})
		}
	}
}
