package redis_test

import (
	"context"
	"errors"
	"fmt"
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

// What is handed back twice, as the client sends again what had no answer, comes back once:
// the slot may be another call's by then.
func TestGiveBackTwice(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		c := client(t, addr)
		r := scheduler.PerHour(1)
		first, second, third := newSchedule(t, c, "twice", r, 1), newSchedule(t, c, "twice", r, 1), newSchedule(t, c, "twice", r, 1)
		redis.GiveBackTwice(t.Context(), first, func() {
			_, wait, err := second.Step(t.Context(), 1)
			require.NoError(t, err)
			assert.Zero(t, wait)
		})
		_, wait, err := third.Step(t.Context(), 1)
		require.NoError(t, err)
		assert.InDelta(t, 3600, wait.Seconds(), 60)
	})
}

// A server that only reads is away, and stays so.
func TestReadOnly(t *testing.T) {
	master, replica := realServer(t), realServer(t)
	host, port, err := net.SplitHostPort(master.Addr)
	require.NoError(t, err)
	require.NoError(t, client(t, replica.Addr).Do(t.Context(), "REPLICAOF", host, port).Err())
	require.Eventually(t, func() bool {
		return client(t, replica.Addr).Set(t.Context(), "x", "y", 0).Err() != nil
	}, eventually, 10*ms)
	var downs, ups atomic.Int64
	sched, err := redis.New(client(t, replica.Addr), "x", scheduler.PerSecond(100), 1, redis.FailLocal(4), redis.WithOnChange(func(s redis.State) {
		if s.Up {
			ups.Add(1)
		} else {
			downs.Add(1)
		}
	}))
	require.NoError(t, err)
	s := newShaper(t, sched)
	ctx, cancel := context.WithTimeout(t.Context(), 1200*ms)
	defer cancel()
	for s.Wait(ctx) == nil {
	}
	assert.EqualValues(t, 1, downs.Load())
	assert.Zero(t, ups.Load())
}

// A hold ends within an outage, and the outage after it: the call that waits leaves.
func TestNoHangAfterOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newScripted(t, 2*ms).failing(errors.New("gone"))
		sched, err := f.on("b", scheduler.PerSecond(100), 1, redis.FailClosed())
		require.NoError(t, err)
		s, err := shaper.NewFrom(sched)
		require.NoError(t, err)
		for _, away := range []bool{true, true, false} {
			if !away {
				f.set(false, nil)
				assert.Error(t, s.Wait(t.Context()), "it is looked for while calls come")
				time.Sleep(500 * ms)
			}
			s.HoldUntil(time.Now().Add(2 * time.Second))
			var unavailable *redis.UnavailableError
			err := s.Wait(t.Context())
			assert.Equal(t, away, errors.As(err, &unavailable), err)
			if !away {
				assert.NoError(t, err)
			}
			time.Sleep(500 * ms)
		}
		require.NoError(t, s.Close())
		require.NoError(t, sched.Close())
		time.Sleep(time.Second)
	})
}

// A hold is told whatever is going on when it comes: a step under way, or an outage.
func TestHoldIsNotLost(t *testing.T) {
	for _, away := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newScripted(t, 4*ms)
			r := scheduler.PerSecond(100)
			one, two := newProcess(t, f, r, 1, redis.FailLocal(2), redis.WithSharedHold()), newProcess(t, f, r, 1, redis.FailLocal(2), redis.WithSharedHold())
			l1, l := newDiary(), newDiary()
			if away {
				f.set(false, errors.New("gone"))
			}
			l1.wait(t.Context(), one, 1, 1) // its step is under way
			time.Sleep(ms)
			one.HoldUntil(time.Now().Add(5 * time.Second))
			time.Sleep(time.Second)
			f.set(false, nil)
			time.Sleep(time.Second)
			l.wait(t.Context(), two, 250, 1)
			time.Sleep(2700 * ms)
			assert.Empty(t, l.take(), "away: %v", away)
			require.NoError(t, one.Close())
			require.NoError(t, two.Close())
			time.Sleep(time.Second)
		})
	}
}

// Impatient callers say nothing about the store.
func TestImpatientCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newScripted(t, 20*ms)
		sched, err := f.on("b", scheduler.PerSecond(100), 1, redis.FailClosed())
		require.NoError(t, err)
		for range 8 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*ms)
			defer cancel()
			go sched.Allow(ctx, 1)
		}
		time.Sleep(6 * ms)
		_, err = sched.Allow(t.Context(), 1)
		assert.NoError(t, err)
		time.Sleep(time.Second)
	})
}

// A name is of one limit of each kind.
func TestOneNameManyKinds(t *testing.T) {
	c := client(t, realServer(t).Addr)
	away := redis.WithOnChange(func(s redis.State) { t.Error(s.Err) })
	q, err := redis.NewFixedWindow(c, "n", 10, time.Hour, redis.FailClosed(), away, redis.WithTimeout(patience))
	require.NoError(t, err)
	require.NoError(t, newShaper(t, q).Wait(t.Context()))
	l, err := redis.NewSlidingLog(c, "n", 10, time.Hour, redis.FailClosed(), away, redis.WithTimeout(patience))
	require.NoError(t, err)
	require.NoError(t, newShaper(t, l).Wait(t.Context()))
	p := newSchedule(t, c, "n", scheduler.PerHour(1), 1, away)
	require.NoError(t, newShaper(t, p).Wait(t.Context()))
	// What is no state of a pace counts as none.
	other := newSchedule(t, c, "other", scheduler.PerHour(1), 1, away)
	require.NoError(t, c.LPush(t.Context(), other.Keys()[0], "junk").Err())
	require.NoError(t, newShaper(t, other).Wait(t.Context()))
}

func TestGroupRefusesSchedules(t *testing.T) {
	of := func(string) (scheduler.Scheduler, error) { return scheduler.NewSlidingLog(1000, time.Hour) }
	_, err := redis.NewGroup[string](client(t, closedPort(t)), "w", scheduler.PerSecond(100), 1, redis.FailLocal(1), redis.WithShaper(shaper.WithSchedules(of)))
	assert.ErrorContains(t, err, "schedules by key")
}

// A call that only asks what the wait would be takes no slot.
func TestDelayTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newScripted(t, 2*ms)
		p := newProcess(t, f, scheduler.PerSecond(10), 1, redis.FailLocal(2))
		for range 100 {
			p.Delay()
			time.Sleep(10 * ms)
		}
		assert.Zero(t, p.schedule.Stats().Reserved)
	})
}

// The way to the store may take longer than the horizon.
func TestLongWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, newScripted(t, 80*ms), scheduler.PerSecond(1000), 1, redis.FailLocal(2))
		l := newDiary()
		l.wait(t.Context(), p, 1000, 1)
		time.Sleep(1500 * ms)
		assert.Len(t, l.take(), 1000)
	})
}

// What left alone is counted without being asked for.
func TestQuotaCountsWhatLeftAlone(t *testing.T) {
	srv := realServer(t)
	q, err := redis.NewFixedWindow(client(t, srv.Addr), "q", 100, 24*time.Hour, redis.FailLocal(1), redis.WithTimeout(patience))
	require.NoError(t, err)
	s := newShaper(t, q)
	require.NoError(t, srv.Kill())
	crowd(t, 50, func() error { return s.Wait(t.Context()) })
	require.NoError(t, srv.Run())
	require.Eventually(t, func() bool { return q.Stats().Used == 50 }, eventually, 10*ms)
}

// A deep line is served by runs after a hold and a pause as before.
func TestRunsAfterHold(t *testing.T) {
	for _, paused := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newScripted(t, 2*ms)
			p := newProcess(t, f, scheduler.PerSecond(1000), 1, redis.FailLocal(2))
			l := newDiary()
			l.wait(t.Context(), p, 1000, 1)
			time.Sleep(200 * ms)
			if paused {
				p.Pause()
				time.Sleep(time.Second)
				p.Resume()
			} else {
				p.HoldUntil(time.Now().Add(time.Second))
			}
			time.Sleep(3 * time.Second)
			assert.Len(t, l.take(), 1000)
			assert.Less(t, p.schedule.Stats().Steps, int64(50), "paused: %v", paused)
		})
	}
}

// A key that has expired by itself is not taken for a lost one.
func TestExpiredIsNotLost(t *testing.T) {
	srv := miniredis.RunT(t)
	s := newSchedule(t, client(t, srv.Addr()), "expired", scheduler.PerMinute(1), 1)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	srv.SetTime(now)
	d, err := s.Allow(t.Context(), 1)
	require.NoError(t, err)
	require.True(t, d.OK)
	srv.FlushAll()
	d, err = s.Allow(t.Context(), 1)
	require.NoError(t, err)
	require.False(t, d.OK)
	srv.FlushAll()
	srv.SetTime(now.Add(61 * time.Second))
	d, err = s.Allow(t.Context(), 1)
	require.NoError(t, err)
	assert.True(t, d.OK)
	assert.Equal(t, time.Minute, d.ResetAfter)
}

// The error that an error wraps hides passwords as well; passwords of one letter are
// not looked for; and the options of a client stay as they are.
func TestErrorsHideAll(t *testing.T) {
	gone := errors.New("gone")
	dialer := func(context.Context, string, string) (net.Conn, error) {
		return nil, fmt.Errorf("a dial with secret: %w", gone)
	}
	for _, password := range []string{"secret", "a"} {
		c := goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:1", Password: password, MaxRetries: -1, DialerRetries: 1, Dialer: dialer})
		defer c.Close()
		sched, err := redis.New(c, "x", scheduler.PerSecond(1), 1, redis.FailClosed())
		require.NoError(t, err)
		s := newShaper(t, sched)
		err = s.Acquire(t.Context(), 1)
		require.Error(t, err)
		err = s.Acquire(t.Context(), 1)
		var unavailable *redis.UnavailableError
		require.ErrorAs(t, err, &unavailable)
		assert.ErrorIs(t, err, gone)
		assert.Contains(t, err.Error(), "a dial")
		if password == "secret" {
			assert.NotContains(t, unavailable.Err.Error(), "secret")
		}
	}
	addrs := []string{"user:hush@127.0.0.1:1"}
	cc := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: addrs})
	defer cc.Close()
	_, err := redis.New(cc, "x", scheduler.PerSecond(1), 1, redis.FailClosed())
	require.NoError(t, err)
	assert.Equal(t, "user:hush@127.0.0.1:1", cc.Options().Addrs[0])
}

// A quota whose key holds something else says so, and guesses nothing.
func TestQuotaOfAnotherState(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		c := client(t, addr)
		require.NoError(t, c.Set(t.Context(), "sluice:{q}:window", "junk", 0).Err())
		require.NoError(t, c.Set(t.Context(), "sluice:{q}:log", "junk", 0).Err())
		fixed, err := redis.NewFixedWindow(c, "q", 10, time.Hour, redis.FailClosed(), redis.WithTimeout(patience))
		require.NoError(t, err)
		sliding, err := redis.NewSlidingLog(c, "q", 10, time.Hour, redis.FailClosed(), redis.WithTimeout(patience))
		require.NoError(t, err)
		assert.ErrorContains(t, newShaper(t, fixed).Wait(t.Context()), "no state of a quota")
		assert.ErrorContains(t, newShaper(t, sliding).Wait(t.Context()), "WRONGTYPE")
	})
}
