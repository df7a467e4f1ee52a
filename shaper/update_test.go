package shaper_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// setLimit returns a change of the windows among the schedules.
func setLimit(limit int64) func(scheduler.Scheduler) error {
	return func(s scheduler.Scheduler) error {
		if window, ok := s.(interface {
			SetLimit(time.Time, int64) error
		}); ok {
			return window.SetLimit(time.Now(), limit)
		}
		return nil
	}
}

// BenFradet/RiotSharp#557, dolejska-daniel/riot-api#70, stravalib/stravalib#141: the limit is
// learned from an answer while calls wait.
func TestLimitIsLearnedWhileCallsWait(t *testing.T) {
	window := func() scheduler.Scheduler { return scheduler.Must(scheduler.NewSlidingLog(2, 10*time.Second)) }
	for name, make := range map[string]func(*testing.T) (wait func() error, update func(func(scheduler.Scheduler) error) error){
		"NewFrom": func(t *testing.T) (func() error, func(func(scheduler.Scheduler) error) error) {
			s, err := shaper.NewFrom(window())
			require.NoError(t, err)
			return func() error { return s.Wait(t.Context()) }, s.Update
		},
		"WithLimits": func(t *testing.T) (func() error, func(func(scheduler.Scheduler) error) error) {
			s := newShaper(t, scheduler.Unlimited, shaper.WithLimits(window()))
			return func() error { return s.Wait(t.Context()) }, s.Update
		},
		"PerCall": func(t *testing.T) (func() error, func(func(scheduler.Scheduler) error) error) {
			s := newShaper(t, scheduler.Unlimited, shaper.WithLimits(scheduler.PerCall(window())))
			return func() error { return s.WaitN(t.Context(), 500) }, s.Update
		},
		"Key": func(t *testing.T) (func() error, func(func(scheduler.Scheduler) error) error) {
			g, err := shaper.NewGroup[string](scheduler.Unlimited, shaper.WithSchedules(func(string) (scheduler.Scheduler, error) { return window(), nil }))
			require.NoError(t, err)
			return func() error { return g.Wait(t.Context(), "a") }, g.Of("a").Update
		},
		"Under": func(t *testing.T) (func() error, func(func(scheduler.Scheduler) error) error) {
			g, err := shaper.NewGroup[string](scheduler.Unlimited, shaper.Under(newShaper(t, scheduler.Unlimited)),
				shaper.WithSchedules(func(string) (scheduler.Scheduler, error) { return window(), nil }))
			require.NoError(t, err)
			return func() error { return g.Wait(t.Context(), "a") }, g.Of("a").Update
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wait, update := make(t)
				r := newRecorder()
				for range 10 {
					r.submit(wait)
				}
				r.until(time.Second)
				require.NoError(t, update(setLimit(5)))
				r.until(time.Minute)
				const s = time.Second
				assert.Equal(t, []time.Duration{0, 0, s, s, s, 10 * s, 10 * s, 11 * s, 11 * s, 11 * s}, r.left())
			})
		})
	}
}

// A lower limit is kept at once, and tells those that are too late by it.
func TestLimitIsLoweredWhileCallsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := shaper.NewFrom(scheduler.Must(scheduler.NewSlidingLog(3, 10*time.Second)))
		require.NoError(t, err)
		r := newRecorder()
		for range 5 {
			r.wait(t.Context(), s)
		}
		costly := r.submit(func() error { return s.WaitN(t.Context(), 3) })
		late, _ := r.depart(t.Context(), s.Depart, shaper.Call{Deadline: time.Now().Add(25 * time.Second)})
		last := r.wait(t.Context(), s)
		r.until(time.Second)
		require.NoError(t, s.Update(setLimit(1)))
		synctest.Wait()
		assert.ErrorIs(t, costly.err, shaper.ErrCost, "it could leave no more")
		assert.ErrorIs(t, late.err, shaper.ErrDeadline)
		r.until(2 * time.Minute)
		assert.Equal(t, []time.Duration{0, 0, 0, 10 * time.Second, 20 * time.Second, 30 * time.Second}, r.left())
		assert.Equal(t, 30*time.Second, last.at)
		conserved(t, s)
	})
}

// A bucket that grows lets leave at once what fits into it.
func TestCapacityGrowsWhileCallsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := shaper.NewFrom(scheduler.Must(scheduler.NewLeakyBucket(scheduler.PerSecond(1), 2)))
		require.NoError(t, err)
		r := newRecorder()
		for range 6 {
			r.wait(t.Context(), s)
		}
		r.until(500 * ms)
		require.NoError(t, s.Update(func(b scheduler.Scheduler) error {
			return b.(*scheduler.LeakyBucket).Resize(time.Now(), 4)
		}))
		r.until(time.Minute)
		assert.Equal(t, []time.Duration{0, 0, 500 * ms, 500 * ms, time.Second, 2 * time.Second}, r.left())
	})
}

// A rate that Update has set is that of the Shaper, and an error, or a panic, of the function
// leaves a line that goes on.
func TestUpdateOfARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerMinute(1))
		r := newRecorder()
		r.wait(t.Context(), s)
		r.wait(t.Context(), s)
		setRate := func(limit scheduler.Scheduler) error {
			return limit.(scheduler.RateSetter).SetRate(time.Now(), scheduler.PerSecond(1))
		}
		boom := errors.New("boom")
		err := s.Update(func(limit scheduler.Scheduler) error { return errors.Join(setRate(limit), boom) })
		assert.ErrorIs(t, err, boom)
		assert.Equal(t, scheduler.PerSecond(1), s.Stats().Rate)
		require.NoError(t, s.Scale(1, 2))
		assert.Equal(t, scheduler.PerSecond(1), scheduler.Must(s.Stats().Rate.Scale(2, 1)), "a share of the new one")
		assert.PanicsWithValue(t, "boom", func() {
			_ = s.Update(func(limit scheduler.Scheduler) error { _ = setRate(limit); panic("boom") })
		})
		r.until(time.Minute)
		assert.Equal(t, []time.Duration{0, time.Second}, r.left())
	})
}

// A partner tells its own count: more than ours is charged, less is given back.
func TestSetUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(1), shaper.WithBurst(10), shaper.WithTolerance(0))
		r := newRecorder()
		r.submit(func() error { return s.WaitN(t.Context(), 10) })
		r.submit(func() error { return s.WaitN(t.Context(), 5) })
		r.until(time.Second)
		require.NoError(t, s.SetUsed(5)) // we had counted 9
		r.submit(func() error { return s.WaitN(t.Context(), 1) })
		r.until(1500 * ms)
		require.NoError(t, s.SetUsed(30))
		r.until(time.Minute)
		// 20 s until there is room beyond 10.
		assert.Equal(t, []time.Duration{0, time.Second, 22500 * ms}, r.left())
		assert.Error(t, s.SetUsed(-1))
	})
}

// The window of a day is as the partner counts it; the next one begins with nothing.
func TestSetUsedOfAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := shaper.NewGroup[string](scheduler.Unlimited, shaper.WithSchedules(func(string) (scheduler.Scheduler, error) {
			return scheduler.NewFixedWindow(100, 24*time.Hour)
		}))
		require.NoError(t, err)
		r := newRecorder()
		k := g.Of("a")
		require.NoError(t, k.SetUsed(100))
		for range 2 {
			r.submit(func() error { return k.WaitN(t.Context(), 60) })
		}
		other := r.submit(func() error { return g.WaitN(t.Context(), "b", 60) })
		assert.True(t, other.ended, "another key has a count of its own")
		r.until(time.Hour)
		require.NoError(t, k.SetUsed(40))
		r.until(72 * time.Hour)
		assert.Equal(t, []time.Duration{time.Hour, 24 * time.Hour, 0}, r.left())
	})
}

func TestSetUsedNeedsOneLimitThatCounts(t *testing.T) {
	log := scheduler.Must(scheduler.NewSlidingLog(2, time.Second))
	s, err := shaper.NewFrom(log)
	require.NoError(t, err)
	assert.ErrorIs(t, s.SetUsed(1), errors.ErrUnsupported)
	two := newShaper(t, scheduler.PerSecond(1), shaper.WithLimits(scheduler.Must(scheduler.NewFixedWindow(2, time.Second))))
	assert.ErrorContains(t, two.SetUsed(1), "several")
	one := newShaper(t, scheduler.Unlimited, shaper.WithLimits(scheduler.Must(scheduler.NewFixedWindow(2, time.Second))))
	assert.NoError(t, one.SetUsed(1))
}
