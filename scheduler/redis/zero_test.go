package redis_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/queue"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/redis"
	"github.com/sluice-go/sluice/shaper"
)

// A zero value says what it is at its first use.
func TestZeroValues(t *testing.T) {
	const zero = "redis: zero Schedule or Quota: make one with New, NewFixedWindow or NewSlidingLog"
	now := time.Now()
	for _, use := range []func(*redis.Schedule){
		func(s *redis.Schedule) { s.Next(now, 0, 1) },
		func(s *redis.Schedule) { s.Commit(now, now, 1) },
		func(s *redis.Schedule) { s.MaxCost() },
		func(s *redis.Schedule) { s.Tolerance() },
		func(s *redis.Schedule) { s.Hold(now) },
		func(s *redis.Schedule) { s.Forfeit(now, 0) },
		func(s *redis.Schedule) { _, _ = s.Allow(t.Context(), 1) },
		func(s *redis.Schedule) { _ = s.Close() },
		func(s *redis.Schedule) { s.Demand(now, 1, 1, now) },
		func(s *redis.Schedule) { _ = s.Refusal() },
		func(s *redis.Schedule) { _, _ = s.FreshAt() },
		func(s *redis.Schedule) { s.Forfeited(now, 0) },
		func(s *redis.Schedule) { s.Stats() },
		func(s *redis.Schedule) { _, _ = redis.NewShaper(s) },
	} {
		assert.PanicsWithValue(t, zero, func() { use(new(redis.Schedule)) })
	}
	for _, use := range []func(*redis.Quota){
		func(q *redis.Quota) { q.Next(now, 0, 1) },
		func(q *redis.Quota) { q.Commit(now, now, 1) },
		func(q *redis.Quota) { q.MaxCost() },
		func(q *redis.Quota) { _ = q.Close() },
	} {
		assert.PanicsWithValue(t, zero, func() { use(new(redis.Quota)) })
	}
	_, err := redis.NewShaper(nil)
	assert.EqualError(t, err, "redis: schedule nil: must be a Schedule or a Quota")
	assert.EqualError(t, new(redis.UnavailableError), "redis: store  unavailable: ")
	assert.False(t, new(redis.UnavailableError).Timeout())
}

// A call of a line whose schedule was closed is refused for that, and not for a wait of
// centuries.
func TestScheduleThatWasClosedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, newScripted(t, 0), scheduler.PerSecond(10), 1, redis.FailLocal(1))
		require.NoError(t, p.schedule.Close())
		assert.ErrorIs(t, p.Wait(t.Context()), redis.ErrClosed)
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, p.Wait(soon), redis.ErrClosed)
		require.NoError(t, p.Close())
		assert.ErrorIs(t, p.Wait(t.Context()), shaper.ErrClosed)
	})
}

// A slot is of use for as long as the tolerance says, and is let go then.
func TestTolerance(t *testing.T) {
	for _, tolerance := range []time.Duration{ms, 5 * ms, 30 * ms} {
		synctest.Test(t, func(t *testing.T) {
			sched, err := newScripted(t, 0).on("x", scheduler.PerSecond(10), 1, redis.FailLocal(1), redis.WithTolerance(tolerance))
			require.NoError(t, err)
			assert.Equal(t, tolerance, sched.Tolerance())
			for late, missed := range map[time.Duration]int64{tolerance: 0, tolerance + 1: 1} {
				sched.Demand(time.Now(), 1, 1, time.Time{})
				synctest.Wait()
				before := sched.Stats().Missed
				require.EqualValues(t, 1, sched.Stats().InHand)
				time.Sleep(late)
				sched.Demand(time.Now(), 1, 1, time.Time{})
				at := sched.Next(time.Now(), 0, 1)
				assert.Equal(t, missed, sched.Stats().Missed-before, "%v late", late)
				if missed == 0 {
					assert.Equal(t, time.Now(), at)
					sched.Commit(at, at, 1)
				}
				sched.Demand(time.Now(), 0, 0, time.Time{})
				time.Sleep(time.Second) // what is left is handed back
			}
			require.NoError(t, sched.Close())
			time.Sleep(time.Second)
		})
	}
	_, err := newScripted(t, 0).on("x", scheduler.PerSecond(10), 1, redis.FailLocal(1), redis.WithTolerance(ms-1))
	assert.EqualError(t, err, "redis: tolerance 999.999µs: must be from 1ms to 1h")
}

// A store that is away is no reason to give a queue up for good.
func TestQueueOutlivesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newScripted(t, 2*ms)
		m := store.join(t, scheduler.PerSecond(10), 1, redis.FailClosed(), 0)
		q, err := queue.New(m.line, queue.Run, queue.WithErrorHandler(func(err error) { t.Error(err) }))
		require.NoError(t, err)
		store.set(true, nil)
		for range 5 {
			require.NoError(t, q.Submit(t.Context(), func(context.Context) error { m.diary.note(); return nil }))
		}
		time.Sleep(time.Minute)
		require.Empty(t, m.diary.times())
		store.set(false, nil)
		unrun, err := q.Shutdown(t.Context())
		require.NoError(t, err)
		assert.Empty(t, unrun)
		assert.Len(t, m.diary.times(), 5)
		assert.Less(t, time.Since(m.diary.began), time.Minute+2*time.Second)
	})
}
