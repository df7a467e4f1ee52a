package shaper_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// A new bound reaches the calls that wait: a higher one lets the head leave at once, a lower
// one keeps it until enough have been released. A Group's reaches keys in use and new ones.
func TestSetMaxInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10))
		g, err := shaper.NewGroup[string](scheduler.PerSecond(10))
		require.NoError(t, err)
		for _, tc := range []struct {
			set     func(int) error
			acquire func() error
			release func()
		}{
			{s.SetMaxInFlight, func() error { return s.Acquire(t.Context(), 1) }, s.Release},
			{g.SetMaxInFlight, func() error { return g.Acquire(t.Context(), "k", 1) }, func() { g.Release("k") }},
		} {
			assert.EqualError(t, tc.set(0), "shaper: 0 in flight: must be at least 1")
			require.NoError(t, tc.set(1))
			r := newRecorder()
			for range 4 {
				r.submit(tc.acquire)
			}
			r.until(time.Second)
			assert.Equal(t, []time.Duration{0}, r.left())
			require.NoError(t, tc.set(math.MaxInt))
			r.until(time.Second + 150*ms)
			require.NoError(t, tc.set(2)) // three are in flight
			tc.release()
			r.until(2 * time.Second)
			assert.Equal(t, []time.Duration{0, time.Second, 1100 * ms}, r.left())
			tc.release()
			r.until(3 * time.Second)
			assert.Equal(t, []time.Duration{0, time.Second, 1100 * ms, 2 * time.Second}, r.left())
			tc.release()
			tc.release()
		}
		require.NoError(t, g.SetMaxInFlight(1)) // "k" is idle: it is bound anew with that
		require.NoError(t, g.Acquire(t.Context(), "k", 1))
		time.Sleep(time.Second)
		r := newRecorder()
		r.submit(func() error { return g.Acquire(t.Context(), "k", 1) })
		r.until(time.Second)
		assert.Empty(t, r.left())
		g.Release("k")
		synctest.Wait()
		g.Release("k")
	})
}

// bare is a schedule that is one and no more; settable has a rate that can be set and is not told.
type bare struct{ scheduler.Scheduler }

type settable struct{ scheduler.Scheduler }

func (settable) SetRate(time.Time, scheduler.Rate) error { return nil }

// CanScale says no exactly where Scale always will.
func TestCanScale(t *testing.T) {
	gcra := must(scheduler.NewGCRA(scheduler.PerSecond(10), 1))
	for name, tc := range map[string]struct {
		schedule scheduler.Scheduler
		why      string
	}{
		"GCRA":        {gcra, ""},
		"window":      {must(scheduler.NewSlidingLog(100, 10*time.Second)), "cannot be set"},
		"All":         {scheduler.All(must(scheduler.NewSlidingLog(100, 10*time.Second)), must(scheduler.NewGCRA(scheduler.PerSecond(1), 1))), "cannot be set"},
		"wrapped":     {bare{gcra}, "cannot be set"},
		"rate untold": {settable{gcra}, "tells no rate"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShaperFrom(t, tc.schedule)
			if tc.why == "" {
				require.NoError(t, s.CanScale())
				require.NoError(t, s.Scale(1, 2))
				return
			}
			require.ErrorContains(t, s.CanScale(), tc.why)
			require.Error(t, s.Scale(1, 2))
		})
	}
	require.NoError(t, newShaper(t, scheduler.Unlimited).CanScale(), "the rate may come later")
	limit := must(scheduler.NewSlidingLog(1, time.Second))
	require.NoError(t, newShaper(t, scheduler.PerSecond(1), shaper.WithLimits(limit)).CanScale())
	g, err := shaper.NewGroup[string](scheduler.PerSecond(1))
	require.NoError(t, err)
	require.NoError(t, g.CanScale())
}
