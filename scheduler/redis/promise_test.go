package redis_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/redis"
	"github.com/sluice-go/sluice/shaper"
)

// One process that sends all it can leaves the others their turns.
func TestHungryProcessStarvesNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newScripted(t, ms)
		r := scheduler.PerSecond(100)
		ctx, stop := context.WithCancel(t.Context())
		hungry := store.join(t, r, 1, redis.FailLocal(), 0)
		hungry.call(ctx, 500)
		var waits []time.Duration
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range 7 {
			m := store.join(t, r, 1, redis.FailLocal(), 0)
			all.Go(func() {
				rng := rand.New(rand.NewPCG(1, uint64(i)))
				for ctx.Err() == nil {
					time.Sleep(time.Duration(rng.ExpFloat64() * float64(500*ms)))
					began := time.Now()
					if m.line.Wait(ctx) == nil {
						m.diary.note()
						mu.Lock()
						waits = append(waits, time.Since(began))
						mu.Unlock()
					}
				}
			})
		}
		began := time.Now()
		time.Sleep(10 * time.Second)
		stop()
		all.Wait()
		slices.Sort(waits)
		require.Greater(t, len(waits), 70)
		assert.Less(t, waits[len(waits)/2], 2*10*ms+2*50*ms, "2 T + 2 H")
		assert.GreaterOrEqual(t, len(hungry.diary.times())+len(waits), 990, "all of the limit within %v", time.Since(began))
	})
}

// Processes that end and others that begin lose nothing on Close.
func TestRollingRestartLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newScripted(t, ms)
		ctx, stop := context.WithCancel(t.Context())
		var all []member
		join := func() member {
			m := store.join(t, scheduler.PerSecond(100), 1, redis.FailLocal(), 0)
			m.call(ctx, 3)
			all = append(all, m)
			return m
		}
		for range 20 {
			join()
		}
		time.Sleep(2 * time.Second)
		began := time.Now()
		for i := range 10 {
			require.NoError(t, all[i].line.Close())
			join()
			time.Sleep(100 * ms)
		}
		time.Sleep(time.Second)
		stop()
		left := between(merge(all), began, began.Add(2*time.Second))
		assert.GreaterOrEqual(t, len(left), 196)
		assertConforms(t, left, scheduler.PerSecond(100), 1, 10*ms+ms)
	})
}

// To ask changes nothing, whatever is asked.
func TestNextIsPure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newScripted(t, ms)
		sched, err := store.on("pure", scheduler.PerSecond(10), 3, redis.FailLocal())
		require.NoError(t, err)
		q := newScripted(t, ms)
		rng := rand.New(rand.NewPCG(1, 1))
		for range 50 {
			sched.Demand(time.Now(), rng.Int64N(5), 1+rng.Int64N(4), time.Time{})
			time.Sleep(time.Duration(rng.Int64N(int64(100 * ms))))
			synctest.Wait()
			now, before := time.Now(), sched.Stats()
			for range 20 {
				at, ahead, n := now.Add(time.Duration(rng.Int64N(int64(time.Second)))), rng.Int64N(20), 1+rng.Int64N(5)
				next := sched.Next(at, ahead, n)
				assert.False(t, next.Before(at))
				assert.Equal(t, next, sched.Next(at, ahead, n))
				if ahead == 0 {
					assert.Equal(t, next, sched.Next(next, 0, n))
				}
				assert.False(t, sched.Next(at, ahead+1, n).Before(sched.Next(at, 0, n)) && ahead > 0)
				assert.Equal(t, at.Add(math.MaxInt64), sched.Next(at, 0, sched.MaxCost()+1))
			}
			assert.Equal(t, before, sched.Stats())
		}
		assert.Zero(t, q.stepsTaken())
		require.NoError(t, sched.Close())
		time.Sleep(time.Second)
	})
}

// Where the way is long, a first connection is no outage, and nothing leaves unlimited by it.
func TestFirstConnectionIsNoOutage(t *testing.T) {
	for _, way := range []time.Duration{20 * ms, 40 * ms, 60 * ms} {
		srv := realServer(t)
		slow := newDelay(t, srv.Addr, way/2)
		c := goredis.NewClient(&goredis.Options{Addr: slow})
		t.Cleanup(func() { assert.NoError(t, c.Close()) })
		sched, err := redis.New(c, "far", scheduler.PerSecond(50), 1, redis.FailClosed(), redis.WithOnChange(func(s redis.State) { t.Error(way, s.Err) }))
		require.NoError(t, err)
		s := newShaper(t, sched)
		began := time.Now()
		left := crowd(t, 50, func() error { return s.Wait(t.Context()) })
		assert.Len(t, left, 50)
		assert.Less(t, time.Since(began), 3*time.Second)
		assertConforms(t, left, scheduler.PerSecond(50), 1, 5*ms+way+50*ms)
	}
}

// A Group over Redis does what any Group does.
func TestGroupIsAnyGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newScripted(t, ms)
		account, err := shaper.New(scheduler.PerSecond(100))
		require.NoError(t, err)
		g, err := redis.GroupOn[host](store.path(), store.client, "g", scheduler.PerSecond(10), 1, redis.FailLocal(1),
			redis.WithShaper(shaper.Under(account), shaper.WithWeights(func(host) int { return 2 })))
		require.NoError(t, err)
		wait := func(key host, n int) time.Duration {
			began := time.Now()
			var all sync.WaitGroup
			for range n {
				all.Go(func() { assert.NoError(t, g.Wait(t.Context(), key)) })
			}
			all.Wait()
			return time.Since(began)
		}
		assert.InDelta(t, float64(900*ms), float64(wait("a", 10)), float64(10*ms))
		g.HoldUntil("a", time.Now().Add(2*time.Second))
		assert.InDelta(t, float64(2*time.Second), float64(wait("a", 1)), float64(10*ms))
		time.Sleep(time.Second)
		require.NoError(t, g.Charge("a", 5))
		assert.InDelta(t, float64(500*ms), float64(wait("a", 1)), float64(10*ms))
		require.NoError(t, g.Scale("b", 1, 2))
		time.Sleep(time.Second)
		assert.Greater(t, wait("b", 40), 7*time.Second/2)
		require.NoError(t, g.Close())
		require.NoError(t, account.Close())
		time.Sleep(time.Second)
	})
}
