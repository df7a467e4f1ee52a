package redis_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
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
		r := scheduler.PerHour(1)
		s, watched := watchedLine(t, newSchedule(t, c, "G01", r, 6), 0)
		other := client(t, addr)
		soon, cancel := context.WithTimeout(t.Context(), eventually)
		defer cancel()
		for i := range 6 {
			if i == 3 {
				require.NoError(t, other.ScriptFlush(t.Context()).Err())
			}
			require.NoError(t, s.Wait(soon))
		}
		assertShared(t, watched.Take(), r, 6)
		_, wait, err := newSchedule(t, c, "G01", r, 6).Step(t.Context(), 1)
		require.NoError(t, err)
		assert.InDelta(t, 3600, wait.Seconds(), 60, "each call is charged once")

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
	require.Eventually(t, func() bool { return b.Exists(t.Context(), before.Keys()[0]).Val() == 1 }, eventually, 10*ms)
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
		var left []redis.Departure
		var all sync.WaitGroup
		began = time.Now()
		for i := range 3 {
			skew := time.Duration(i-1) * 5 * time.Second
			s, watched := watchedLine(t, newSchedule(t, client(t, addr), "G03b", r, 1, redis.WithSkew(skew)), skew)
			all.Go(func() {
				crowd(t, 33, func() error { return s.Wait(t.Context()) })
				mu.Lock()
				defer mu.Unlock()
				left = append(left, watched.Take()...)
			})
		}
		all.Wait()
		require.Len(t, left, 99)
		assert.GreaterOrEqual(t, time.Since(began), 980*ms)
		assertShared(t, left, r, 1)
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
		for i := 0; i < 200 || seen == 0; i++ {
			_, _, err := fast.Step(ctx, 1)
			require.NoError(t, err)
			ttl := c.Do(ctx, "PTTL", fast.Keys()[0]).Val().(int64)
			require.NotEqual(t, int64(-1), ttl, "never for ever")
			if ttl > 0 {
				seen++
			}
		}
		// As it was seen, the key lives for a millisecond at least.

		slow := newSchedule(t, c, "G04 slow", scheduler.PerDay(1), 1)
		_, _, err := slow.Step(ctx, 1)
		require.NoError(t, err)
		ttl := c.Do(ctx, "PTTL", slow.Keys()[0]).Val().(int64)
		assert.InDelta(t, 86_400_000, ttl, 60_000)

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
		_, _, err := newSchedule(t, c, fmt.Sprint("G04 ", i), scheduler.PerSecond(20), 1, redis.WithTimeout(brief)).Step(t.Context(), 1)
		require.NoError(t, err)
	}
	// Redis looks for what has expired, some at a time.
	assert.Eventually(t, func() bool { return c.DBSize(t.Context()).Val() == 0 }, eventually, 100*ms)
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
	}, eventually, 20*ms)
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
	sched, err := redis.New(cc, "a", scheduler.PerSecond(10), 1, redis.FailClosed(), redis.WithTimeout(patience))
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

// Redis away or hanging; TestBreaker has what that costs, to the nanosecond:
// SweetSophia/noosphere#276, Emp1500/Code2Flow#11,
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
			make := func(p redis.Policy) (*redis.Schedule, *shaper.Shaper) {
				changes.Store(0)
				sched, err := redis.New(client(t, addr), "G07", r, 1, p, counted)
				require.NoError(t, err)
				return sched, newShaper(t, sched)
			}

			_, refusing := make(redis.FailClosed())
			err := refusing.Wait(t.Context())
			var unavailable *redis.UnavailableError
			require.ErrorAs(t, err, &unavailable)
			assert.Equal(t, addr, unavailable.Store)
			for range 100 {
				require.ErrorAs(t, refusing.Wait(t.Context()), &unavailable)
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			assert.ErrorIs(t, refusing.Wait(ended), context.Canceled)
			assert.EqualValues(t, 1, changes.Load())

			_, sharing := make(redis.FailLocal(4))
			began := time.Now()
			crowd(t, 20, func() error { return sharing.Wait(t.Context()) })
			assert.GreaterOrEqual(t, time.Since(began), 19*40*ms)
			assert.EqualValues(t, 1, changes.Load())

			_, unseen := make(redis.FailOpen())
			require.ErrorAs(t, unseen.Wait(t.Context()), &unavailable, "nothing is unlimited before it was ever seen")
			sched, open := make(redis.FailOpen())
			sched.Meet()
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

// (c) of the same: it comes back. TestFourShareThroughOutages has the rates.
func TestCaseG07Back(t *testing.T) {
	for _, how := range []string{"stopped", "killed"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel() // with the other one
			srv := realServer(t)
			r := scheduler.PerSecond(100)
			states := make(chan redis.State, 10)
			sched := newSchedule(t, client(t, srv.Addr), "G07c", r, 1,
				redis.WithTimeout(time.Second), redis.WithOnChange(func(s redis.State) { states <- s }))
			s, watched := watchedLine(t, sched, 0)
			ctx, end := context.WithCancel(t.Context())
			defer end()
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					for s.Wait(ctx) == nil {
					}
				})
			}
			reaches := func(what func(redis.Stats) int64, n int64) {
				t.Helper()
				require.Eventually(t, func() bool { return what(sched.Stats()) >= n }, eventually, ms)
			}
			used := func(s redis.Stats) int64 { return s.Used }
			alone := func(s redis.Stats) int64 { return s.Alone }

			reaches(used, 10)
			if how == "stopped" {
				stop(t, srv)
			} else {
				require.NoError(t, srv.Kill())
			}
			down := <-states
			assert.False(t, down.Up)
			t.Log(down.Err)
			reaches(alone, 10)
			if how == "stopped" {
				require.NoError(t, srv.Continue())
			} else {
				require.NoError(t, srv.Run())
			}
			assert.True(t, (<-states).Up)
			reaches(used, sched.Stats().Used+50)
			end()
			all.Wait()
			assert.Empty(t, states, "one change, one call")
			left := watched.Take()
			assertShared(t, left, r, 1)
			assertAlone(t, left, r) // it is the only one that lives
		})
	}
}

// assertAlone checks what a process promises of what it let leave on its own.
func assertAlone(t testing.TB, left []redis.Departure, r scheduler.Rate) {
	t.Helper()
	var at []time.Time
	for _, d := range left {
		if d.Alone {
			at = append(at, d.At)
		}
	}
	sortTimes(at)
	assertConforms(t, at, r, 1, 5*ms)
}

// Waits are exact and in the right unit: brandur/redis-cell#56, Losant/redis-gcra#3,
// antifuchs/ratelimit_meter#36, sigmavirus24/rush#18, redis/redis#14826.
func TestCaseG09ReportedWaits(t *testing.T) {
	waits := []struct {
		rate  scheduler.Rate
		burst int64
		wait  time.Duration
		reset time.Duration
	}{
		{scheduler.PerMinute(6), 6, 10 * time.Second, time.Minute},
		{scheduler.PerMinute(2), 2, 30 * time.Second, time.Minute},
		{scheduler.PerSecond(10), 1, 100 * ms, 100 * ms},
	}
	// On a clock that stands still they are exact: the wait is enough, and 1 us less is not.
	t.Run("set clock", func(t *testing.T) {
		srv := miniredis.RunT(t)
		for _, tc := range waits {
			s := newSchedule(t, client(t, srv.Addr()), tc.rate.String(), tc.rate, tc.burst)
			now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			ask := func(at time.Time) redis.Decision {
				srv.SetTime(at)
				d, err := s.Allow(t.Context(), 1)
				require.NoError(t, err)
				return d
			}
			for range tc.burst {
				assert.True(t, ask(now).OK)
			}
			assert.Equal(t, redis.Decision{RetryAfter: tc.wait, ResetAfter: tc.reset}, ask(now))
			early := ask(now.Add(tc.wait - time.Microsecond))
			assert.Equal(t, redis.Decision{RetryAfter: time.Microsecond, ResetAfter: tc.reset - tc.wait + time.Microsecond}, early)
			assert.True(t, ask(now.Add(tc.wait)).OK)
		}
	})
	// On one that runs, they are what has passed less.
	t.Run("server", func(t *testing.T) {
		c := client(t, realServer(t).Addr)
		for _, tc := range waits {
			s := newSchedule(t, c, tc.rate.String(), tc.rate, tc.burst)
			began := time.Now()
			for range tc.burst {
				_, err := s.Allow(t.Context(), 1)
				require.NoError(t, err)
			}
			d, err := s.Allow(t.Context(), 1)
			require.NoError(t, err)
			elapsed := time.Since(began)
			if elapsed >= tc.wait {
				t.Logf("the machine took %v: nothing can be said", elapsed)
				continue
			}
			assert.False(t, d.OK)
			assert.LessOrEqual(t, d.RetryAfter, tc.wait)
			assert.GreaterOrEqual(t, d.RetryAfter, tc.wait-elapsed)
			assert.LessOrEqual(t, d.ResetAfter, tc.reset)
			assert.GreaterOrEqual(t, d.ResetAfter, tc.reset-elapsed)
		}
		// Slept through, the wait is enough.
		s := newSchedule(t, c, "slept", scheduler.PerSecond(10), 1)
		for refused := 0; refused < 5; {
			d, err := s.Allow(t.Context(), 1)
			require.NoError(t, err)
			if d.OK {
				continue
			}
			refused++
			time.Sleep(d.RetryAfter)
			d, err = s.Allow(t.Context(), 1)
			require.NoError(t, err)
			assert.True(t, d.OK)
		}
	})
}
