package redis_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/redis"
)

// A crowded limit is one with more demand than it lets leave, of callers that cannot wait long.
type crowded struct {
	processes int
	interval  time.Duration
	burst     int64
	patience  time.Duration
	offered   float64 // a second, by all
	cancels   float64 // share of the callers that give up before
	kills     float64 // a second: a process goes with all that it has, and another one comes
	least     float64 // share of the limit that leaves
}

func (c crowded) String() string {
	return fmt.Sprintf("%d processes, T %v, B %d, patience %v, %v offered, %v cancel, %v kills", c.processes, c.interval, c.burst, c.patience, c.offered, c.cancels, c.kills)
}

// come has callers come at random until ctx ends.
func (c crowded) come(ctx context.Context, rng *rand.Rand, m member) {
	for ctx.Err() == nil {
		time.Sleep(time.Duration(rng.ExpFloat64() * float64(time.Second) * float64(c.processes) / c.offered))
		patience, deadline := c.patience, c.patience
		if rng.Float64() < c.cancels {
			patience = time.Duration(rng.Float64() * float64(c.patience))
		}
		go func() {
			call, end := context.WithTimeout(ctx, deadline)
			defer end()
			defer time.AfterFunc(patience, end).Stop()
			if m.line.Wait(call) == nil {
				m.diary.note()
			}
		}()
	}
}

// What is reserved for a call that gives up is used by another one: callers of little patience use
// the whole limit, in one process as in fifty, and never more.
func TestCallersOfLittlePatienceUseTheWholeLimit(t *testing.T) {
	warm, span := 2*time.Second, 10*time.Second
	if testing.Short() || raced {
		span = 3 * time.Second
	}
	for _, c := range []crowded{
		{processes: 50, interval: 100 * ms, patience: 500 * ms, offered: 50, least: .95},
		{processes: 50, interval: 100 * ms, patience: 500 * ms, offered: 15, least: .85}, // chance alone leaves some unused
		{processes: 50, interval: 100 * ms, patience: 2 * time.Second, offered: 50, least: .95},
		{processes: 50, interval: 10 * ms, patience: 200 * ms, offered: 200, least: .95},
		{processes: 8, interval: 100 * ms, patience: 500 * ms, offered: 40, least: .95},
		{processes: 1, interval: 100 * ms, patience: 500 * ms, offered: 20, least: .95},
		{processes: 8, interval: 100 * ms, patience: 200 * ms, offered: 40, least: .85},
		{processes: 8, interval: 500 * ms, patience: 2 * time.Second, offered: 8, least: .95},
		{processes: 50, interval: 100 * ms, patience: 500 * ms, offered: 50, cancels: .33, least: .95},
		{processes: 8, interval: 10 * ms, burst: 10, patience: 200 * ms, offered: 200, cancels: .33, least: .95},
		{processes: 50, interval: 10 * ms, patience: 200 * ms, offered: 200, kills: 1, least: .9},
	} {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := newScripted(t, ms)
				rng := rand.New(rand.NewPCG(1, uint64(c.processes)))
				r := scheduler.Every(c.interval)
				burst := max(c.burst, 1)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				var all []member
				join := func() (end func()) {
					m := store.join(t, r, burst, redis.FailLocal(), 0)
					all = append(all, m)
					lives, kill := context.WithCancel(ctx)
					go c.come(lives, rand.New(rand.NewPCG(2, rng.Uint64())), m)
					return func() { m.schedule.Kill(); kill() }
				}
				var ends []func()
				for range c.processes {
					ends = append(ends, join())
				}
				if c.kills > 0 {
					go func() {
						for {
							time.Sleep(time.Duration(float64(time.Second) / c.kills))
							if ctx.Err() != nil {
								return
							}
							i := rng.IntN(len(ends))
							ends[i]()
							ends[i] = join()
						}
					}()
				}
				began := time.Now()
				time.Sleep(warm + span)
				stop()
				synctest.Wait()
				left := merge(all)
				assertConforms(t, left, r, int(burst), max(5*ms, c.interval/10)+ms)
				used := float64(len(between(left, began.Add(warm), began.Add(warm+span)))) / (float64(span) / float64(c.interval))
				t.Logf("%.1f %% of the limit, %.0f steps/s", 100*used, float64(store.stepsTaken())/(warm+span).Seconds())
				assert.GreaterOrEqual(t, used, c.least)
			})
		})
	}
}
