package redis_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/redis"
	"github.com/sluice-go/sluice/shaper"
)

// Four processes that send all they can share a quota exactly, and all of it can be used.
func TestQuotaIsExact(t *testing.T) {
	const limit, window = 200, 250 * ms
	for _, kind := range []string{"fixed window", "sliding log"} {
		t.Run(kind, func(t *testing.T) {
			onEach(t, func(t *testing.T, addr string) {
				var watched []*redis.WatchedQuota
				var all sync.WaitGroup
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				for range 4 {
					var q *redis.Quota
					var err error
					patient := redis.WithTimeout(patience)
					if kind == "fixed window" {
						q, err = redis.NewFixedWindow(client(t, addr), "quota", limit, window, redis.FailClosed(), patient)
					} else {
						q, err = redis.NewSlidingLog(client(t, addr), "quota", limit, window, redis.FailClosed(), redis.WithLease(50*ms), patient)
					}
					require.NoError(t, err)
					w := &redis.WatchedQuota{Quota: q}
					watched = append(watched, w)
					s := newShaper(t, w)
					for range 20 {
						all.Go(func() {
							for s.Wait(ctx) == nil {
							}
						})
					}
				}
				left := func() (left []redis.QuotaDeparture) {
					for _, w := range watched {
						left = append(left, w.Left()...)
					}
					return left
				}
				check, enough := assertFixed, 2
				if kind == "sliding log" {
					check, enough = assertSliding, 2*limit
				}
				require.Eventually(t, func() bool { return check(t, left(), limit, window) >= enough }, eventually, 50*ms)
				cancel()
				all.Wait()
				check(t, left(), limit, window)
			})
		})
	}
}

// assertFixed checks that no window has more than its limit, and returns how many have all
// of it, but for what four processes had in hand.
func assertFixed(t *testing.T, left []redis.QuotaDeparture, limit int, window time.Duration) (full int) {
	t.Helper()
	counts := map[int64]int{}
	for _, d := range left {
		counts[d.Start]++
		// The server is on this machine, and so is its clock.
		end := time.UnixMicro(d.Start).Add(window)
		assert.True(t, d.Before.Before(end), "left %v after the end of its window", d.Before.Sub(end))
		assert.False(t, d.After.Before(time.UnixMicro(d.Start)), "left before its window")
	}
	for start, n := range counts {
		assert.LessOrEqual(t, n, limit, start)
		if n > limit*95/100 {
			full++
		}
	}
	return full
}

// assertSliding checks that no window has more than its limit, wherever it begins, and
// returns how many have left.
func assertSliding(t *testing.T, left []redis.QuotaDeparture, limit int, window time.Duration) int {
	t.Helper()
	var before, after []time.Time
	for _, d := range left {
		before, after = append(before, d.Before), append(after, d.After)
	}
	sortTimes(before)
	sortTimes(after)
	for i := limit; i < len(left); i++ {
		if gap := after[i].Sub(before[i-limit]); gap < window {
			t.Errorf("%d units within %v", limit+1, gap)
			break
		}
	}
	return len(left)
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
					q, err := create(client(t, addr), "back", 10, 24*time.Hour, redis.FailClosed(), redis.WithLease(time.Minute), redis.WithTimeout(patience))
					require.NoError(t, err)
					return q
				}
				first, second := quota(), quota()
				// It is told of a call that waits, and that it has gone.
				first.Demand(time.Now(), 10, 10, time.Time{})
				require.Eventually(t, func() bool { return first.Stats().InHand == 10 }, eventually, ms)
				first.Demand(time.Now(), 0, 0, time.Time{})
				require.Eventually(t, func() bool { return first.Stats().Returned == 10 }, eventually, ms)
				s := newShaper(t, second)
				crowd(t, 10, func() error { return s.Wait(t.Context()) })
				// The day's quota is used up, and for how long is known as soon as the server
				// has told.
				require.Eventually(t, func() bool {
					soon, cancel := context.WithTimeout(t.Context(), 100*ms)
					defer cancel()
					err := s.Wait(soon)
					assert.Error(t, err)
					refusal, ok := errors.AsType[*shaper.Refusal](err)
					return ok && refusal.Delay > time.Minute
				}, eventually, ms)
			})
		})
	}
}

func TestQuotaBesidesPace(t *testing.T) {
	addr := realServer(t).Addr
	q, err := redis.NewFixedWindow(client(t, addr), "beside", 5, 24*time.Hour, redis.FailClosed(), redis.WithTimeout(patience))
	require.NoError(t, err)
	s, err := shaper.New(scheduler.PerSecond(50), shaper.WithLimits(q))
	require.NoError(t, err)
	crowd(t, 5, func() error { return s.Wait(t.Context()) })
	soon, cancel := context.WithTimeout(t.Context(), 100*ms)
	defer cancel()
	assert.ErrorIs(t, s.Wait(soon), context.DeadlineExceeded)
}
