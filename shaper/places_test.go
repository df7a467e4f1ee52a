package shaper_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// Calls in flight leave no sooner than the pace allows and than a place is free, in
// order; a plain Wait behind them waits its turn.
func TestMaxInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10), shaper.WithMaxInFlight(2))
		r := newRecorder()
		lasts := func(d time.Duration) func() error {
			return func() error {
				if err := s.Acquire(t.Context(), 1); err != nil {
					return err
				}
				go func() { time.Sleep(d); s.Release() }()
				return nil
			}
		}
		r.submit(lasts(250 * ms))
		r.submit(lasts(time.Second))
		r.submit(lasts(time.Second)) // a place is free at 250 ms
		gone, cancel := context.WithCancel(t.Context())
		r.submit(func() error { return s.Acquire(gone, 1) })
		r.submit(lasts(0)) // at 1100 ms
		r.wait(t.Context(), s)
		assert.EqualValues(t, 6, s.Stats().Waiting+s.Stats().InFlight)
		r.until(300 * ms)
		assert.EqualValues(t, 2, s.Stats().InFlight)
		assert.False(t, s.Allow())
		cancel()
		r.until(3 * time.Second)
		assert.Equal(t, []time.Duration{0, 100 * ms, 250 * ms, 1100 * ms, 1200 * ms}, r.left())
		assert.Zero(t, s.Stats().InFlight)
		conserved(t, s)
		assert.PanicsWithValue(t, "shaper: Release without Acquire", s.Release)
	})
}

// The time without a place saves no burst up, whatever the tolerance.
func TestFreedPlacesOpenNoBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10), shaper.WithMaxInFlight(1), shaper.WithTolerance(time.Minute))
		require.NoError(t, s.Acquire(t.Context(), 1))
		r := newRecorder()
		for range 3 {
			r.submit(func() error { return s.Do(t.Context(), func(context.Context) error { return nil }) })
		}
		r.until(10*time.Second + 30*ms)
		s.Release()
		pass(time.Second)
		assert.Equal(t, steps(10*time.Second+30*ms, 100*ms, 3), r.left())
	})
}

func TestMaxInFlightOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup[string](t, scheduler.PerSecond(10), shaper.WithMaxInFlight(1), shaper.WithMaxKeys(1))
		require.NoError(t, g.Acquire(t.Context(), "a", 1))
		time.Sleep(time.Hour)
		assert.Equal(t, 1, g.Len(), "in flight")
		assert.ErrorIs(t, g.Acquire(t.Context(), "b", 1), shaper.ErrTooManyKeys)
		r := newRecorder()
		r.submit(func() error { return g.Acquire(t.Context(), "a", 1) })
		r.until(50 * ms)
		g.Release("a")
		synctest.Wait()
		assert.Equal(t, []time.Duration{50 * ms}, r.left())
		g.Release("a")
		time.Sleep(time.Hour)
		assert.Zero(t, g.Len())
		assert.Panics(t, func() { g.Release("a") })
		dead, cancel := context.WithCancel(t.Context())
		cancel()
		assert.Equal(t, context.Canceled, g.Acquire(dead, "c", 1))
		conservedGroup(t, g)
	})
}

// A share of the rate applies at once; what it is a share of can change meanwhile.
func TestScale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10))
		r := newRecorder()
		for range 6 {
			r.wait(t.Context(), s)
		}
		r.until(50 * ms)
		require.NoError(t, s.Scale(1, 2)) // half a unit is owed: 100 ms
		assert.Equal(t, scheduler.PerSecond(5).Interval(), s.Stats().Rate.Interval())
		r.until(400 * ms) // left at 150 and 350
		require.NoError(t, s.SetRate(scheduler.PerSecond(100)))
		r.until(410 * ms) // 3/4 of a unit is owed at 50/s: 15 ms
		require.NoError(t, s.Scale(1, 1))
		pass(time.Second)
		assert.Equal(t, []time.Duration{0, 150 * ms, 350 * ms, 412500 * time.Microsecond, 422500 * time.Microsecond, 432500 * time.Microsecond}, r.left())
		for _, bad := range [][2]int64{{0, 1}, {-1, 2}, {3, 2}, {1, 0}} {
			assert.ErrorContains(t, s.Scale(bad[0], bad[1]), "share")
		}
		assert.Error(t, newShaperFrom(t, newWindow(t)).Scale(1, 2))
	})
}

func newShaperFrom(t *testing.T, from scheduler.Scheduler) *shaper.Shaper {
	s, err := shaper.NewFrom(from)
	require.NoError(t, err)
	return s
}

// A no of LeaveNow counts as nothing.
func TestLeaveNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10))
		assert.True(t, s.LeaveNow(1))
		assert.False(t, s.LeaveNow(1))
		assert.False(t, s.LeaveNow(0))
		st := s.Stats()
		assert.Equal(t, []int64{1, 1, 0}, []int64{st.Submitted, st.Left, st.Refused})
		time.Sleep(100 * ms)
		assert.True(t, s.LeaveNow(1))
		assert.False(t, newShaperFrom(t, newWindow(t)).LeaveNow(1))

		g := newGroup[string](t, scheduler.PerSecond(10))
		assert.False(t, g.LeaveNow("a", 1), "a new key")
		require.NoError(t, g.Wait(t.Context(), "a"))
		assert.False(t, g.LeaveNow("a", 1))
		time.Sleep(100 * ms)
		assert.True(t, g.LeaveNow("a", 1))
		require.NoError(t, g.Close())
		time.Sleep(100 * ms)
		assert.False(t, g.LeaveNow("a", 1))
		assert.EqualValues(t, 2, g.Stats().Submitted)
	})
}

// A key remembers when a place became free, also while no call uses it, and no other key does.
func TestFreedPlacesOpenNoBurstForAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := 3 * ms
		opts := []shaper.Option{shaper.WithMaxInFlight(1),
			shaper.WithClock(sometimesLate{clock.New(), time.Now(), func(int64) time.Duration { return late }})}
		s := newShaper(t, scheduler.PerSecond(1000), opts...)
		g := newGroup[string](t, scheduler.PerSecond(1000), opts...)
		one := func(key string) {
			t.Helper()
			require.NoError(t, g.Acquire(t.Context(), key, 1))
			g.Release(key)
		}
		require.True(t, s.Allow())
		require.NoError(t, s.Acquire(t.Context(), 1)) // leaves at 4 ms, due at 1 ms
		s.Release()
		require.NoError(t, s.Acquire(t.Context(), 1))
		assert.Equal(t, time.Millisecond, s.Delay(), "no place was free before")
		s.Release()

		require.True(t, g.Allow("a"))
		one("a")
		one("a")
		assert.Equal(t, time.Millisecond, g.Delay("a"), "no place was free before")

		// Were it not for the place of another key, b would have gone on 1 ms after its due time.
		require.True(t, g.Allow("b"))
		require.NoError(t, g.WaitN(t.Context(), "b", 1)) // late by 3 ms
		one("c")
		one("b")
		assert.Zero(t, g.Delay("b"), "it may catch up what a late timer took")
	})
}
