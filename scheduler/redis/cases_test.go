package redis_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/redis"
	"github.com/sluice-go/sluice/shaper"
)

// The server forgets scripts: vutran1710/PyrateLimiter#182, upstash/ratelimit-js#122,
// Effect-TS/effect-smol#2328, express-rate-limit/rate-limit-redis#71.
func TestCaseG01ScriptCacheLost(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		c := client(t, addr)
		r := scheduler.PerSecond(10)
		s := newShaper(t, newSchedule(t, c, "G01", r, 1))
		other := client(t, addr)
		var left []time.Time
		for i := range 6 {
			if i == 3 {
				require.NoError(t, other.ScriptFlush(t.Context()).Err())
			}
			require.NoError(t, s.Wait(t.Context()))
			left = append(left, time.Now())
		}
		assertConforms(t, left, r, 1, 40*ms)
		assert.Less(t, left[5].Sub(left[0]), 900*ms, "each call is charged once")

		// Flushed all the time: no error, each unit charged once.
		ctx, stop := context.WithCancel(t.Context())
		var flushing sync.WaitGroup
		flushing.Go(func() {
			for ctx.Err() == nil {
				_ = other.ScriptFlush(ctx).Err()
			}
		})
		sched := newSchedule(t, c, "G01 flushed", scheduler.PerHour(1), 1)
		for i := range int64(50) {
			granted, wait, err := sched.Step(t.Context(), 1)
			require.NoError(t, err)
			require.EqualValues(t, 1, granted)
			assert.InDelta(t, float64(i)*3600, wait.Seconds(), 60, "unit %d", i)
		}
		stop()
		flushing.Wait()
	})
}

// Another node, one that never saw the script, has the state after a failover.
func TestCaseG01OtherNode(t *testing.T) {
	first, second := realServer(t), realServer(t)
	a, b := client(t, first.Addr), client(t, second.Addr)
	host, port, err := net.SplitHostPort(first.Addr)
	require.NoError(t, err)
	require.NoError(t, b.Do(t.Context(), "REPLICAOF", host, port).Err())
	before := newSchedule(t, a, "G01 node", scheduler.PerHour(1), 1)
	_, _, err = before.Step(t.Context(), 5)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return b.Exists(t.Context(), before.Keys()[0]).Val() == 1 }, 10*time.Second, 10*ms)
	require.NoError(t, b.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
	after := newSchedule(t, b, "G01 node", scheduler.PerHour(1), 1)
	_, wait, err := after.Step(t.Context(), 1)
	require.NoError(t, err)
	assert.InDelta(t, 5*3600, wait.Seconds(), 60)
}

// Clocks that differ, and one total: spring-cloud/spring-cloud-gateway#1688, #2412 and
// #1117, sourcegraph/sourcegraph-public-snapshot#56826,
// wemake-services/django-modern-rest#1312, margince/margince#3162,
// SecureBananaLabs/bug-bounty#4377.
func TestCaseG03OneTotal(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		r := scheduler.PerSecond(2)
		p1 := newSchedule(t, client(t, addr), "G03a", r, 4)
		p2 := newSchedule(t, client(t, addr), "G03a", r, 4, redis.WithSkew(-10*time.Second))
		allowed := 0
		began := time.Now()
		for range 10 {
			for _, p := range []*redis.Schedule{p1, p2} {
				d, err := p.Allow(t.Context(), 1)
				require.NoError(t, err)
				if d.OK {
					allowed++
				}
			}
		}
		if took := time.Since(began); took < 400*ms {
			assert.Equal(t, 4, allowed)
		} else {
			t.Logf("the machine took %v: nothing can be said", took)
		}

		// (b) 3 processes with 100 calls each.
		r = scheduler.PerSecond(100)
		var mu sync.Mutex
		var left []time.Time
		var all sync.WaitGroup
		began = time.Now()
		for i := range 3 {
			skew := time.Duration(i-1) * 5 * time.Second
			s := newShaper(t, newSchedule(t, client(t, addr), "G03b", r, 1, redis.WithSkew(skew)), shaper.WithClock(skewed(skew)))
			all.Go(func() {
				mine := crowd(t, 33, func() error { return s.Wait(t.Context()) })
				mu.Lock()
				defer mu.Unlock()
				left = append(left, mine...)
			})
		}
		all.Wait()
		sortTimes(left)
		require.Len(t, left, 99)
		assert.GreaterOrEqual(t, left[98].Sub(began), 980*ms)
		assertConforms(t, left, r, 1, 40*ms)
	})
}

// How long keys live: redis/redis#15093, Losant/redis-gcra#8, redis/redis#4548,
// JSONbored/loopover#9493, NVIDIA/nvcf#1571.
func TestCaseG04KeyLifetime(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		c := client(t, addr)
		ctx := t.Context()

		fast := newSchedule(t, c, "G04 fast", scheduler.PerSecond(100_000), 1)
		seen := 0
		for range 200 {
			_, _, err := fast.Step(ctx, 1)
			require.NoError(t, err)
			ttl := c.Do(ctx, "PTTL", fast.Keys()[0]).Val().(int64)
			require.NotEqual(t, int64(-1), ttl, "never for ever")
			if ttl > 0 {
				seen++
			}
		}
		assert.NotZero(t, seen, "the key lives for a millisecond at least")

		slow := newSchedule(t, c, "G04 slow", scheduler.PerDay(1), 1)
		_, _, err := slow.Step(ctx, 1)
		require.NoError(t, err)
		ttl := c.Do(ctx, "PTTL", slow.Keys()[0]).Val().(int64)
		assert.InDelta(t, 86_400_000, ttl, 2000)

		// Whenever a client dies, what it has written is dated.
		for i := range 50 {
			dying, cancel := context.WithTimeout(ctx, time.Duration(i)*20*time.Microsecond)
			dier := goredis.NewClient(&goredis.Options{Addr: addr, ContextTimeoutEnabled: true, MaxRetries: -1})
			_, _, _ = newSchedule(t, dier, fmt.Sprint("G04 dying ", i), scheduler.PerMinute(1), 1).Step(dying, 1)
			_ = dier.Close()
			cancel()
		}
		for _, key := range c.Keys(ctx, "*").Val() {
			assert.NotEqual(t, int64(-1), c.Do(ctx, "PTTL", key).Val().(int64), key)
		}
	})
}

func TestCaseG04KeysExpire(t *testing.T) {
	c := client(t, realServer(t).Addr)
	for i := range 2_000 {
		_, _, err := newSchedule(t, c, fmt.Sprint("G04 ", i), scheduler.PerSecond(20), 1).Step(t.Context(), 1)
		require.NoError(t, err)
	}
	// Redis looks for what has expired, some at a time.
	assert.Eventually(t, func() bool { return c.DBSize(t.Context()).Val() == 0 }, 20*time.Second, 100*ms)
}

// Names with braces, in a cluster: spring-cloud/spring-cloud-gateway#248,
// SGrondin/bottleneck#180, vutran1710/PyrateLimiter#151,
// timebug/lua-resty-redis-ratelimit#9.
func TestCaseG06ClusterSlots(t *testing.T) {
	srv := realServer(t)
	c := client(t, srv.Addr)
	names := []string{"a", "a{b}c", "{}", "x}y{", "{", "}", "%7B", "a b", "ü"}
	seen := map[string]bool{}
	slot := func(key string) int64 { return c.ClusterKeySlot(t.Context(), key).Val() }
	for _, name := range names {
		sets := [][]string{newSchedule(t, c, name, scheduler.PerSecond(10), 1).Keys(), redis.GroupKeys("prefix", name), redis.GroupKeys(name, "key")}
		for _, keys := range sets {
			for _, key := range keys[1:] {
				assert.Equal(t, slot(keys[0]), slot(key), "%q", keys)
			}
			assert.False(t, seen[keys[0]], "%q is one limit", keys[0])
			seen[keys[0]] = true
		}
	}

	// A cluster refuses keys that are not declared, and keys of several slots.
	cluster := realServer(t, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf")
	direct := client(t, cluster.Addr)
	require.NoError(t, direct.ClusterAddSlotsRange(t.Context(), 0, 16383).Err())
	require.Eventually(t, func() bool {
		return direct.Do(t.Context(), "SET", "x", "y").Err() == nil
	}, 10*time.Second, 20*ms)
	cc := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{cluster.Addr}})
	defer cc.Close()
	for _, name := range names {
		s, err := redis.NewShaper(newSchedule(t, cc, name, scheduler.PerSecond(10), 1,
			redis.WithOnChange(func(s redis.State) { t.Errorf("%q: %v", name, s.Err) })))
		require.NoError(t, err)
		require.NoError(t, s.Wait(t.Context()), name)
		require.NoError(t, s.Close())
	}
	// An error of the cluster surfaces and is never "allowed".
	require.NoError(t, direct.Do(t.Context(), "CLUSTER", "DELSLOTSRANGE", 0, 16383).Err())
	sched, err := redis.New(cc, "a", scheduler.PerSecond(10), 1, redis.FailClosed())
	require.NoError(t, err)
	s, err := redis.NewShaper(sched)
	require.NoError(t, err)
	defer s.Close()
	var unavailable *redis.UnavailableError
	assert.ErrorAs(t, s.Wait(t.Context()), &unavailable)
	d, err := sched.Allow(t.Context(), 1)
	assert.ErrorAs(t, err, &unavailable)
	assert.False(t, d.OK)
}

// hanging accepts connections and never replies.
func hanging(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
		}
	}()
	return l.Addr().String()
}

// Redis away or hanging: SweetSophia/noosphere#276, Emp1500/Code2Flow#11,
// SdSarthak/AegisAI#866, we-promise/sure#840, frain-dev/convoy#1950.
func TestCaseG07RedisAway(t *testing.T) {
	for name, addr := range map[string]func(*testing.T) string{
		"closed port": func(t *testing.T) string { return closedPort(t) },
		"hanging":     hanging,
	} {
		t.Run(name, func(t *testing.T) {
			r := scheduler.PerSecond(100)
			addr := addr(t)
			var changes atomic.Int64
			counted := redis.WithOnChange(func(s redis.State) {
				changes.Add(1)
				assert.False(t, s.Up)
				assert.Contains(t, s.Err.Error(), addr)
			})
			make := func(p redis.Policy) (*redis.Schedule, *redis.Shaper) {
				changes.Store(0)
				sched, err := redis.New(client(t, addr), "G07", r, 1, p, counted)
				require.NoError(t, err)
				return sched, newShaper(t, sched)
			}

			_, refusing := make(redis.FailClosed())
			began := time.Now()
			err := refusing.Wait(t.Context())
			var unavailable *redis.UnavailableError
			require.ErrorAs(t, err, &unavailable)
			assert.Equal(t, addr, unavailable.Store)
			t.Logf("refused after %v: %v", time.Since(began), err)
			began = time.Now()
			for range 100 {
				require.ErrorAs(t, refusing.Wait(t.Context()), &unavailable)
			}
			t.Logf("100 more after %v", time.Since(began))
			assert.Less(t, time.Since(began), 90*ms, "one call waits for the timeout, and no more")
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			assert.ErrorIs(t, refusing.Wait(ended), context.Canceled)
			assert.EqualValues(t, 1, changes.Load())

			_, sharing := make(redis.FailLocal(4))
			left := crowd(t, 20, func() error { return sharing.Wait(t.Context()) })
			assertConforms(t, left, scheduler.PerSecond(25), 1, 5*ms+40*ms)
			assert.EqualValues(t, 1, changes.Load())

			sched, open := make(redis.FailOpen())
			crowd(t, 50, func() error { return open.Wait(t.Context()) })
			assert.EqualValues(t, 50, sched.Stats().Alone)
			assert.EqualValues(t, 1, changes.Load())

			// The end of a context is honoured in all.
			_, waiting := make(redis.FailLocal(100_000))
			soon, cancel := context.WithTimeout(t.Context(), 30*ms)
			defer cancel()
			assert.ErrorIs(t, waiting.Wait(soon), context.DeadlineExceeded)
		})
	}
}

// (c) of the same: it comes back.
func TestCaseG07Back(t *testing.T) {
	for _, how := range []string{"stopped", "killed"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel() // with the other one
			srv := realServer(t)
			r := scheduler.PerSecond(100)
			states := make(chan redis.State, 10)
			sched := newSchedule(t, client(t, srv.Addr), "G07c", r, 1, redis.WithTimeout(100*ms), redis.WithOnChange(func(s redis.State) { states <- s }))
			s := newShaper(t, sched)
			stop := make(chan struct{})
			var mu sync.Mutex
			var left []time.Time
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						if !assert.NoError(t, s.Wait(t.Context())) {
							return
						}
						mu.Lock()
						left = append(left, time.Now())
						mu.Unlock()
					}
				})
			}
			time.Sleep(300 * ms)
			if how == "stopped" {
				require.NoError(t, srv.Stop())
			} else {
				require.NoError(t, srv.Kill())
			}
			gone := time.Now()
			down := <-states
			assert.False(t, down.Up)
			t.Logf("noticed after %v: %v", time.Since(gone), down.Err)
			time.Sleep(max(outage(t)/2, 700*ms))
			if how == "stopped" {
				require.NoError(t, srv.Continue())
			} else {
				require.NoError(t, srv.Run())
			}
			back := time.Now()
			assert.True(t, (<-states).Up)
			took := time.Since(back)
			t.Logf("back after %v", took)
			assert.Less(t, took, time.Second)
			time.Sleep(1500 * ms)
			close(stop)
			all.Wait()
			sortTimes(left)
			assertConforms(t, left, r, 2, 60*ms)
			var after, during int
			for _, at := range left {
				switch {
				case at.After(back.Add(time.Second)) && at.Before(back.Add(1500*ms)):
					after++
				case at.After(down1(gone)) && at.Before(back):
					during++
				}
			}
			t.Logf("%d in half a second after, %d during", after, during)
			assert.Greater(t, after, 40, "shared pacing again within a second")
			share := back.Sub(down1(gone)).Seconds() * 25
			assert.InDelta(t, share, during, 3+share/20)
			assert.Empty(t, states, "one change, one call")
		})
	}
}

// down1 is when all have noticed that a server is gone.
func down1(gone time.Time) time.Time { return gone.Add(250 * ms) }

// Waits are exact and in the right unit: brandur/redis-cell#56, Losant/redis-gcra#3,
// antifuchs/ratelimit_meter#36, sigmavirus24/rush#18, redis/redis#14826.
func TestCaseG09ReportedWaits(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		c := client(t, addr)
		for _, tc := range []struct {
			rate  scheduler.Rate
			burst int64
			wait  time.Duration
			reset time.Duration
		}{
			{scheduler.PerMinute(6), 6, 10 * time.Second, time.Minute},
			{scheduler.PerMinute(2), 2, 30 * time.Second, time.Minute},
			{scheduler.PerSecond(10), 1, 100 * ms, 100 * ms},
		} {
			s := newSchedule(t, c, "G09 "+tc.rate.String(), tc.rate, tc.burst)
			began := time.Now()
			var d redis.Decision
			var err error
			for i := range tc.burst + 1 {
				d, err = s.Allow(t.Context(), 1)
				require.NoError(t, err)
				assert.Equal(t, i < tc.burst, d.OK)
			}
			elapsed := time.Since(began)
			assert.LessOrEqual(t, d.RetryAfter, tc.wait)
			assert.GreaterOrEqual(t, d.RetryAfter, tc.wait-elapsed)
			assert.LessOrEqual(t, d.ResetAfter, tc.reset)
			assert.GreaterOrEqual(t, d.ResetAfter, tc.reset-elapsed)
		}

		// Slept through, the wait is enough, and 1 ms less is not.
		s := newSchedule(t, c, "G09 slept", scheduler.PerSecond(10), 1)
		for range 5 {
			d, err := s.Allow(t.Context(), 1)
			require.NoError(t, err)
			require.True(t, d.OK)
			asked := time.Now()
			d, err = s.Allow(t.Context(), 1)
			told := time.Now()
			require.NoError(t, err)
			require.False(t, d.OK)
			time.Sleep(time.Until(asked.Add(d.RetryAfter - ms)))
			// A reply takes its time, so this may come too late to be early.
			early, err := s.Allow(t.Context(), 1)
			require.NoError(t, err)
			if time.Now().Before(asked.Add(d.RetryAfter)) {
				assert.False(t, early.OK)
			}
			if !early.OK {
				time.Sleep(time.Until(told.Add(d.RetryAfter)))
				d, err = s.Allow(t.Context(), 1)
				require.NoError(t, err)
				assert.True(t, d.OK)
			}
			d, err = s.Allow(t.Context(), 1)
			require.NoError(t, err)
			time.Sleep(d.RetryAfter + ms)
		}
	})
}
