package redis_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/redis"
	"github.com/sluice-go/sluice/shaper"
)

// Four processes that send all they can share a quota exactly.
func TestQuotaIsExact(t *testing.T) {
	const limit, window, span = 200, 250 * ms, 1100 * ms
	for _, kind := range []string{"fixed window", "sliding log"} {
		t.Run(kind, func(t *testing.T) {
			onEach(t, func(t *testing.T, addr string) {
				var mu sync.Mutex
				var left []time.Time
				var all sync.WaitGroup
				ctx, cancel := context.WithTimeout(t.Context(), span)
				defer cancel()
				for range 4 {
					var q *redis.Quota
					var err error
					patient := redis.WithTimeout(time.Second)
					if kind == "fixed window" {
						q, err = redis.NewFixedWindow(client(t, addr), "quota", limit, window, redis.FailClosed(), patient)
					} else {
						q, err = redis.NewSlidingLog(client(t, addr), "quota", limit, window, redis.FailClosed(), redis.WithLease(50*ms), patient)
					}
					require.NoError(t, err)
					s := newShaper(t, q)
					var each sync.WaitGroup
					for range 20 {
						each.Go(func() {
							for s.Wait(ctx) == nil {
								mu.Lock()
								left = append(left, time.Now())
								mu.Unlock()
							}
						})
					}
					all.Go(func() { each.Wait(); t.Logf("%+v", q.Stats()) })
				}
				all.Wait()
				sortTimes(left)
				if kind == "fixed window" {
					// The server is on this machine, and so is its clock.
					counts := map[int64]int{}
					for _, at := range left {
						counts[at.UnixMicro()/window.Microseconds()]++
					}
					full := 0
					for at, n := range counts {
						assert.LessOrEqual(t, n, limit, at)
						if n > limit*95/100 {
							full++
						}
					}
					assert.GreaterOrEqual(t, full, 2, "all of it can be used: %v", counts)
					return
				}
				for i := limit; i < len(left); i++ {
					if gap := left[i].Sub(left[i-limit]); gap < window {
						t.Fatalf("%d units within %v", limit+1, gap)
					}
				}
				assert.Greater(t, len(left), 2*limit*9/10)
			})
		})
	}
}

// What is taken and not used is there for others.
func TestQuotaComesBack(t *testing.T) {
	for _, kind := range []string{"fixed window", "sliding log"} {
		t.Run(kind, func(t *testing.T) {
			onEach(t, func(t *testing.T, addr string) {
				quota := func() *redis.Quota {
					create := redis.NewFixedWindow
					if kind != "fixed window" {
						create = redis.NewSlidingLog
					}
					q, err := create(client(t, addr), "back", 10, 24*time.Hour, redis.FailClosed(), redis.WithLease(time.Minute), redis.WithTimeout(time.Second))
					require.NoError(t, err)
					return q
				}
				first, second := quota(), quota()
				// It is told of ten calls that wait, and never sees them again.
				first.Next(time.Now(), 0, 10)
				require.Eventually(t, func() bool { return first.Stats().Returned == 10 }, 5*time.Second, ms)
				s := newShaper(t, second)
				crowd(t, 10, func() error { return s.Wait(t.Context()) })
				soon, cancel := context.WithTimeout(t.Context(), 200*ms)
				defer cancel()
				assert.Error(t, s.Wait(soon), "the day's quota is used up")
				// By now it is known for how long.
				var refusal *shaper.Refusal
				soon, cancel = context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				require.ErrorAs(t, s.Wait(soon), &refusal)
				assert.Greater(t, refusal.Delay, time.Minute)
			})
		})
	}
}

func TestQuotaBesidesPace(t *testing.T) {
	addr := realServer(t).Addr
	q, err := redis.NewFixedWindow(client(t, addr), "beside", 5, 24*time.Hour, redis.FailClosed(), redis.WithTimeout(time.Second))
	require.NoError(t, err)
	s, err := shaper.New(scheduler.PerSecond(50), shaper.WithLimits(q))
	require.NoError(t, err)
	crowd(t, 5, func() error { return s.Wait(t.Context()) })
	soon, cancel := context.WithTimeout(t.Context(), 100*ms)
	defer cancel()
	assert.ErrorIs(t, s.Wait(soon), context.DeadlineExceeded)
}
