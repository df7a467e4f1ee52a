package redis_test

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/redis"
)

// The clock of the server is set back by an hour, and again before the wait is over. A
// meter that asks again after the wait that it was told is let through, and not before.
func TestMeterAfterTheServersClockWasSetBack(t *testing.T) {
	srv := miniredis.RunT(t)
	s := newSchedule(t, client(t, srv.Addr()), "meter", scheduler.PerMinute(1), 1)
	ask := func(at time.Time) redis.Decision {
		srv.SetTime(at)
		d, err := s.Allow(t.Context(), 1)
		require.NoError(t, err)
		return d
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	require.True(t, ask(now).OK)
	now = now.Add(-time.Hour)
	assert.Equal(t, time.Minute, ask(now).RetryAfter)
	now = now.Add(20 * time.Second)
	assert.Equal(t, 40*time.Second, ask(now).RetryAfter)
	now = now.Add(-time.Hour)
	assert.Equal(t, 40*time.Second, ask(now).RetryAfter)
	assert.Equal(t, time.Microsecond, ask(now.Add(40*time.Second-time.Microsecond)).RetryAfter)
	assert.True(t, ask(now.Add(40*time.Second)).OK)
}

// A quota that is used up stays so for what was left of its window, whatever the clock of
// the server shows, and is free again within a window after that: not when the clock has
// caught up.
func TestQuotaAfterTheServersClockWasSetBack(t *testing.T) {
	const limit, window = 10, 24 * time.Hour
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		kind  string
		back  time.Duration
		still time.Duration // after it was set back, it is used up still
		free  time.Duration // and free
	}{
		{"fixed window", time.Microsecond, 12 * time.Hour, 12*time.Hour + time.Microsecond},
		{"fixed window", 30 * 24 * time.Hour, 12*time.Hour - time.Microsecond, 12 * time.Hour},
		// What is left of the window ends at 5 o'clock, and that day counts with it.
		{"fixed window", 30*24*time.Hour - 5*time.Hour, 31*time.Hour - time.Microsecond, 31 * time.Hour},
		{"sliding log", time.Microsecond, window - time.Microsecond, window},
		{"sliding log", 30 * 24 * time.Hour, window - time.Microsecond, window},
	} {
		t.Run(tc.kind+" by "+tc.back.String(), func(t *testing.T) {
			srv := miniredis.RunT(t)
			create, opts := redis.NewFixedWindow, []redis.Option{redis.WithTimeout(patience)}
			lease := time.Duration(0)
			if tc.kind == "sliding log" {
				lease = time.Second
				create, opts = redis.NewSlidingLog, append(opts, redis.WithLease(lease))
			}
			q, err := create(client(t, srv.Addr()), "quota", limit, window, redis.FailClosed(), opts...)
			require.NoError(t, err)
			take := func(at time.Time, units int64) int64 {
				srv.SetTime(at)
				granted, err := q.Take(t.Context(), units)
				require.NoError(t, err)
				return granted
			}
			require.EqualValues(t, limit, take(noon, 20))
			back := noon.Add(-tc.back)
			for _, after := range []time.Duration{0, time.Minute, tc.still / 2, tc.still + lease} {
				assert.Zero(t, take(back.Add(after), 1), after)
			}
			assert.EqualValues(t, limit, take(back.Add(tc.free+lease), 20))
			assert.Zero(t, take(back.Add(tc.free+lease), 1))
		})
	}
}
