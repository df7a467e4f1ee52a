package redis_test

import (
	"context"
	"errors"
	"math"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/redis"
	"github.com/sluice-go/sluice/shaper"
)

// Processes find out at different times that the store is back. None sends on its own
// beside processes that share again.
func TestAllComeBackTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newScripted(t, 2*ms)
		r := scheduler.PerSecond(100)
		var left []*diary
		var cut [2]atomic.Bool
		for i := range cut {
			path := f.path()
			before := path.Before
			path.Before = func(ctx context.Context) error {
				if cut[i].Load() {
					return errors.New("gone")
				}
				return before(ctx)
			}
			sched, err := path.On(f.client, "bubble", r, 1, redis.FailLocal(2))
			require.NoError(t, err)
			sched.Meet()
			s, err := redis.NewShaper(sched)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()); time.Sleep(time.Second) })
			l := newDiary()
			l.wait(t.Context(), process{s, sched}, 500, 1)
			left = append(left, l)
		}
		time.Sleep(300 * ms)
		cut[0].Store(true)
		time.Sleep(110 * ms) // so the one looks for the store half a period after the other
		cut[1].Store(true)
		time.Sleep(time.Second)
		began := time.Now()
		cut[0].Store(false)
		cut[1].Store(false)
		time.Sleep(time.Second)
		synctest.Wait()
		var merged []time.Time
		for _, l := range left {
			for _, at := range l.take() {
				if at := l.began.Add(at); at.After(began.Add(-100 * ms)) {
					merged = append(merged, at)
				}
			}
		}
		sortTimes(merged)
		assertConforms(t, merged, r, 2, 5*ms)
		assert.Greater(t, len(merged), 50)
	})
}

// A server that hung does not do what was asked of it long ago.
func TestExpiredRequests(t *testing.T) {
	srv := realServer(t)
	r := scheduler.PerHour(1)
	sched := newSchedule(t, client(t, srv.Addr), "expired", r, 1, redis.WithTimeout(500*ms))
	direct := newSchedule(t, client(t, srv.Addr), "expired", r, 1)
	_, _, err := sched.Step(t.Context(), 1)
	require.NoError(t, err)
	c := client(t, srv.Addr)
	ran := calls(t, c, "eval", "evalsha")
	stop(t, srv)
	_, _, err = sched.Step(t.Context(), 1)
	require.Error(t, err)
	time.Sleep(1500 * ms) // beyond what the request is good for
	require.NoError(t, srv.Continue())
	require.Eventually(t, func() bool { return calls(t, c, "eval", "evalsha") > ran }, eventually, ms)
	_, wait, err := direct.Step(t.Context(), 1)
	require.NoError(t, err)
	assert.InDelta(t, 3600, wait.Seconds(), 60)
}

// A lost key is a burst at most, and not even that if the process that asks knows better.
func TestFlushIsABurstAtMost(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		c := client(t, addr)
		r := scheduler.PerMinute(1)
		knows, stranger := newSchedule(t, c, "flushed", r, 2), newSchedule(t, c, "flushed", r, 2)
		allowed := func(s *redis.Schedule) (n int) {
			for range 5 {
				d, err := s.Allow(t.Context(), 1)
				require.NoError(t, err)
				if d.OK {
					n++
				}
			}
			return n
		}
		require.Equal(t, 2, allowed(knows))
		require.NoError(t, c.FlushAll(t.Context()).Err())
		assert.Equal(t, 0, allowed(knows))
		require.NoError(t, c.FlushAll(t.Context()).Err())
		assert.Equal(t, 2, allowed(stranger))
		assert.Equal(t, 0, allowed(knows))
	})
}

func TestErrorsHidePasswords(t *testing.T) {
	c := goredis.NewClient(&goredis.Options{
		Addr: "user:hush@127.0.0.1:1", Password: "secret", MaxRetries: -1, DialerRetries: 1,
		Dialer: func(_ context.Context, _, addr string) (net.Conn, error) {
			return nil, errors.New("dial " + addr + " with secret")
		},
	})
	defer c.Close()
	sched, err := redis.New(c, "x", scheduler.PerSecond(1), 1, redis.FailClosed())
	require.NoError(t, err)
	_, err = sched.Allow(t.Context(), 1)
	var unavailable *redis.UnavailableError
	require.ErrorAs(t, err, &unavailable)
	assert.Equal(t, "127.0.0.1:1", unavailable.Store)
	assert.NotContains(t, err.Error(), "hush")
	assert.NotContains(t, err.Error(), "secret")
	assert.Contains(t, err.Error(), "dial 127.0.0.1:1")
}

// A quota counts in the windows that it says.
func TestQuotaWindows(t *testing.T) {
	srv := miniredis.RunT(t)
	c := client(t, srv.Addr())
	at := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC) // a Monday
	const week = 7 * 24 * time.Hour
	fixed, err := redis.NewFixedWindow(c, "fixed", 10, week, redis.FailClosed(), redis.WithTimeout(patience))
	require.NoError(t, err)
	sliding, err := redis.NewSlidingLog(c, "sliding", 10, week, redis.FailClosed(), redis.WithLease(time.Second), redis.WithTimeout(patience))
	require.NoError(t, err)
	take := func(q *redis.Quota, now time.Time, units int64) int64 {
		srv.SetTime(now)
		granted, err := q.Take(t.Context(), units)
		require.NoError(t, err)
		return granted
	}
	sunday := at.Add(-time.Microsecond)
	assert.EqualValues(t, 7, take(fixed, sunday, 7))
	assert.EqualValues(t, 3, take(fixed, sunday, 7))
	assert.EqualValues(t, 0, take(fixed, sunday, 1))
	assert.EqualValues(t, 10, take(fixed, at, 20))
	assert.EqualValues(t, 0, take(fixed, sunday, 1), "set back, the clock opens nothing")
	assert.EqualValues(t, 0, take(fixed, at.Add(week-time.Microsecond), 1))
	assert.EqualValues(t, 10, take(fixed, at.Add(week), 10))

	assert.EqualValues(t, 4, take(sliding, at, 4))
	assert.EqualValues(t, 6, take(sliding, at.Add(time.Hour), 20))
	after := at.Add(week + time.Second) // and the lease
	assert.EqualValues(t, 0, take(sliding, after.Add(-time.Microsecond), 1))
	assert.EqualValues(t, 4, take(sliding, after, 20))
	assert.EqualValues(t, 0, take(sliding, after.Add(time.Hour-time.Microsecond), 1))
	assert.EqualValues(t, 6, take(sliding, after.Add(time.Hour), 20))
}

func TestWrongArguments(t *testing.T) {
	c := client(t, closedPort(t))
	ok := scheduler.PerSecond(1)
	for name, made := range map[string]func() error{
		"client": func() error { _, err := redis.New(nil, "x", ok, 1, redis.FailOpen()); return err },
		"name":   func() error { _, err := redis.New(c, "", ok, 1, redis.FailOpen()); return err },
		"rate 0": func() error { _, err := redis.New(c, "x", scheduler.Rate{}, 1, redis.FailOpen()); return err },
		"unlimited": func() error {
			_, err := redis.New(c, "x", scheduler.Unlimited, 1, redis.FailOpen())
			return err
		},
		"slow":   func() error { _, err := redis.New(c, "x", scheduler.Every(1<<62), 1, redis.FailOpen()); return err },
		"prime":  func() error { _, err := redis.New(c, "x", scheduler.Per(1<<55+1, 1), 1, redis.FailOpen()); return err },
		"burst":  func() error { _, err := redis.New(c, "x", ok, 0, redis.FailOpen()); return err },
		"huge":   func() error { _, err := redis.New(c, "x", scheduler.PerDay(1), 1<<40, redis.FailOpen()); return err },
		"policy": func() error { _, err := redis.New(c, "x", ok, 1, redis.Policy{}); return err },
		"none":   func() error { _, err := redis.New(c, "x", ok, 1, redis.FailLocal(0)); return err },
		"share": func() error {
			_, err := redis.New(c, "x", scheduler.PerDay(1), 1, redis.FailLocal(math.MaxInt))
			return err
		},
		"horizon": func() error { _, err := redis.New(c, "x", ok, 1, redis.FailOpen(), redis.WithHorizon(0)); return err },
		"timeout": func() error { _, err := redis.New(c, "x", ok, 1, redis.FailOpen(), redis.WithTimeout(-1)); return err },
		"limit":   func() error { _, err := redis.NewFixedWindow(c, "x", 0, time.Hour, redis.FailOpen()); return err },
		"window":  func() error { _, err := redis.NewSlidingLog(c, "x", 1, 1, redis.FailOpen()); return err },
		"part":    func() error { _, err := redis.NewSlidingLog(c, "x", 3, time.Hour, redis.FailLocal(4)); return err },
		"prefix":  func() error { _, err := redis.NewGroup[string](c, "", ok, 1, redis.FailOpen()); return err },
		"keys": func() error {
			_, err := redis.NewGroup[string](c, "x", ok, 1, redis.FailOpen(), redis.WithShaper(shaper.WithMaxKeys(0)))
			return err
		},
		"ring": func() error {
			ring := goredis.NewRing(&goredis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
			defer ring.Close()
			_, err := redis.New(ring, "x", ok, 1, redis.FailOpen())
			return err
		},
	} {
		err := made()
		if assert.Error(t, err, name) && name != "keys" {
			assert.Contains(t, err.Error(), "redis: ", name)
		}
	}
	s := newSchedule(t, c, "x", scheduler.PerDay(1), 1)
	_, err := s.Allow(t.Context(), 0)
	assert.ErrorContains(t, err, "cost 0")
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	assert.True(t, s.Next(time.Now(), 0, 1).After(time.Now().AddDate(100, 0, 0)))
}
