package redis_test

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/oracle"
	"github.com/sluice-go/sluice/internal/trial"
	"github.com/sluice-go/sluice/scheduler"
)

// The slots of the script are those of the definition, in exact rationals, whatever the
// rate: nothing is rounded on the way.
func TestSlotsAreExact(t *testing.T) {
	srv := miniredis.RunT(t)
	c := client(t, srv.Addr())
	trial.Run(t, 20, func(t *testing.T, rng *rand.Rand) {
		units := []int64{1, 3, 7, 60, 333, 1001, 9_999_991}[rng.IntN(7)]
		period := []time.Duration{time.Second, time.Minute, 250 * ms, time.Hour, 24 * time.Hour, 7}[rng.IntN(6)]
		burst := 1 + rng.Int64N(2)*rng.Int64N(20)
		r := scheduler.Per(units, period)
		s := newSchedule(t, c, time.Duration(rng.Int64()).String(), r, burst)
		now := time.Date(2026, 3, 1, 12, 0, 0, rng.IntN(1e6)*1000, time.UTC)
		model := oracle.GCRA{T: oracle.Interval(units, period), Burst: burst}
		for range 40 {
			srv.SetTime(now)
			n := 1 + rng.Int64N(9)
			granted, wait, err := s.Step(t.Context(), n)
			require.NoError(t, err)
			require.Equal(t, n, granted)
			at := oracle.Instant(now.UnixNano())
			due := model.Due(at, 1)
			require.Equal(t, oracle.Ceil(new(big.Rat).Sub(due, at)).Int64(), int64(wait), "rate %v burst %d", r, burst)
			for range n {
				due := model.Due(at, 1)
				model.Leave(due, due, 1)
			}
			now = now.Add(time.Duration(rng.Int64N(int64(12*r.Interval())+2000)) / 1000 * 1000)
		}
	})
}

// A clock that is set back locks no call out and lets none in.
func TestServerClockSetBack(t *testing.T) {
	srv := miniredis.RunT(t)
	s := newSchedule(t, client(t, srv.Addr()), "back", scheduler.PerSecond(1), 1)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	srv.SetTime(now)
	_, _, err := s.Step(t.Context(), 3)
	require.NoError(t, err)
	srv.SetTime(now.Add(-time.Hour))
	_, wait, err := s.Step(t.Context(), 1)
	require.NoError(t, err)
	assert.Equal(t, 3*time.Second, wait)
	srv.SetTime(now.Add(-time.Hour + 4*time.Second))
	_, wait, err = s.Step(t.Context(), 1)
	require.NoError(t, err)
	assert.Zero(t, wait)
	// Forwards, it is idle time: a burst at the most, which is one here.
	srv.SetTime(now.Add(time.Hour))
	_, wait, err = s.Step(t.Context(), 1)
	require.NoError(t, err)
	assert.Zero(t, wait)
	_, wait, err = s.Step(t.Context(), 1)
	require.NoError(t, err)
	assert.Equal(t, time.Second, wait)
}
