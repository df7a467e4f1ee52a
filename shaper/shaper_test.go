package shaper_test

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

func gcra(t testing.TB, r scheduler.Rate, burst int64) *scheduler.GCRA {
	t.Helper()
	g, err := scheduler.NewGCRA(r, burst)
	require.NoError(t, err)
	return g
}

func TestNonsenseIsRefusedByName(t *testing.T) {
	for names, opt := range map[string]shaper.Option{
		"burst 0":           shaper.WithBurst(0),
		"tolerance -1s":     shaper.WithTolerance(-time.Second),
		"queue 0":           shaper.WithQueue(0),
		"queue -3":          shaper.WithQueue(-3),
		"maximum delay -1s": shaper.WithMaxDelay(-time.Second),
		"clock nil":         shaper.WithClock(nil),
		"limit 1 is nil":    shaper.WithLimits(gcra(t, scheduler.PerSecond(1), 1), nil),
	} {
		_, err := shaper.New(scheduler.PerSecond(1), opt)
		assert.ErrorContains(t, err, "shaper: ")
		assert.ErrorContains(t, err, names)
	}
	_, err := shaper.NewFrom(nil)
	assert.ErrorContains(t, err, "schedule nil")
	_, err = shaper.NewFrom(gcra(t, scheduler.PerSecond(1), 1), shaper.WithBurst(2))
	assert.ErrorContains(t, err, "burst 2")
	_, err = shaper.NewFrom(gcra(t, scheduler.PerSecond(1), 1), shaper.WithTolerance(ms))
	assert.ErrorContains(t, err, "tolerance 1ms")
	_, err = shaper.NewFrom(gcra(t, scheduler.PerSecond(1), 1), shaper.WithQueue(0))
	assert.ErrorContains(t, err, "queue 0")
}

// capped is a schedule of its user's: it has a highest cost and no rate.
type capped struct{ scheduler.Scheduler }

func (capped) MaxCost() int64 { return 3 }

func TestCostOutOfRange(t *testing.T) {
	s, err := shaper.NewFrom(capped{gcra(t, scheduler.PerSecond(1), 3)})
	require.NoError(t, err)
	for _, cost := range []int{0, -1, math.MinInt, 4, math.MaxInt} {
		err := s.WaitN(t.Context(), cost)
		assert.ErrorIs(t, err, shaper.ErrCost)
		var refusal *shaper.Refusal
		require.ErrorAs(t, err, &refusal)
		assert.Equal(t, cost, refusal.Cost)
		assert.False(t, s.AllowN(cost))
		assert.False(t, refusal.Timeout())
	}
	assert.True(t, s.AllowN(3), "nothing was taken")
	assert.ErrorContains(t, s.SetRate(scheduler.PerSecond(2)), "cannot be set")
	assert.Zero(t, s.Stats().Rate)
	conserved(t, s)
}

func TestNewFromPacesLikeNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := shaper.NewFrom(gcra(t, scheduler.PerSecond(10), 1), shaper.WithQueue(4))
		require.NoError(t, err)
		r := newRecorder()
		for range 9 {
			r.wait(t.Context(), s)
		}
		require.NoError(t, s.SetRate(scheduler.PerSecond(20)))
		assert.Equal(t, scheduler.PerSecond(20), s.Stats().Rate)
		pass(time.Minute)
		assert.Equal(t, steps(0, 50*ms, 4), r.left())
	})
}

func TestWithLimitsKeepsAllAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(4), shaper.WithLimits(gcra(t, scheduler.PerMinute(60), 1)))
		r := newRecorder()
		for range 5 {
			r.wait(t.Context(), s)
		}
		assert.Equal(t, 5*time.Second, s.Delay())
		pass(time.Minute)
		assert.Equal(t, steps(0, time.Second, 5), r.left())
	})
}

func TestMaxDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10), shaper.WithMaxDelay(100*ms))
		r := newRecorder()
		for range 3 {
			r.wait(t.Context(), s)
		}
		var refusal *shaper.Refusal
		require.ErrorAs(t, r.calls[2].err, &refusal)
		assert.Equal(t, shaper.Refusal{Reason: shaper.ErrMaxDelay, Cost: 1, Delay: 200 * ms}, *refusal)
		assert.True(t, refusal.Timeout())
		assert.NotErrorIs(t, refusal, context.DeadlineExceeded)
		s.HoldUntil(time.Now().Add(time.Second))
		assert.ErrorIs(t, s.Wait(t.Context()), shaper.ErrMaxDelay, "a hold counts")
		pass(time.Minute)
		assert.Equal(t, []time.Duration{0, time.Second}, r.left(), "who waits goes on waiting")
	})
}

// A full line is no reason to give up for good: the refusal tells some delay.
func TestFullLineTellsADelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(1), shaper.WithBurst(10), shaper.WithQueue(2))
		s.Pause()
		r := newRecorder()
		for range 3 {
			r.wait(t.Context(), s)
		}
		var refusal *shaper.Refusal
		require.ErrorAs(t, r.calls[2].err, &refusal)
		assert.ErrorIs(t, refusal, shaper.ErrQueueFull)
		assert.Positive(t, refusal.WouldWait())
		require.NoError(t, s.Close())
	})
}

func TestDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10))
		boom := errors.New("boom")
		r := newRecorder()
		for range 3 {
			r.submit(func() error {
				return s.Do(t.Context(), func(ctx context.Context) error {
					time.Sleep(150 * ms)
					return boom
				})
			})
		}
		pass(101 * ms)
		st := s.Stats()
		assert.EqualValues(t, 2, st.InFlight)
		assert.EqualValues(t, 1, st.Waiting)
		pass(time.Minute)
		assert.Zero(t, s.Stats().InFlight)
		for i, c := range r.calls {
			assert.Equal(t, boom, c.err)
			assert.Equal(t, time.Duration(i)*100*ms+150*ms, c.at)
		}
		assert.Panics(t, func() {
			_ = s.Do(t.Context(), func(context.Context) error { panic("boom") })
		})
		assert.Zero(t, s.Stats().InFlight)

		dead, cancel := context.WithCancel(t.Context())
		cancel()
		assert.Equal(t, context.Canceled, s.Do(dead, func(context.Context) error { panic("not to be run") }))
	})
}

func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10))
		assert.Equal(t, shaper.Stats{Rate: scheduler.PerSecond(10)}, s.Stats())
		require.NoError(t, s.Wait(t.Context()))
		assert.False(t, s.Allow())
		r := newRecorder()
		ctx, cancel := context.WithCancel(t.Context())
		r.submit(func() error { return s.WaitN(ctx, 3) })
		r.submit(func() error { return s.WaitN(t.Context(), 4) })
		until := time.Now().Add(time.Hour)
		s.HoldUntil(until)
		s.Pause()
		assert.Equal(t, shaper.Stats{Submitted: 4, Left: 1, Refused: 1, Waiting: 2, Units: 7,
			Rate: scheduler.PerSecond(10), Paused: true, HeldUntil: until}, round(s.Stats()))
		cancel()
		synctest.Wait()
		s.Resume()
		pass(time.Minute)
		assert.Equal(t, shaper.Stats{Submitted: 4, Left: 2, Refused: 1, Cancelled: 1,
			Rate: scheduler.PerSecond(10)}, s.Stats())
	})
}

// round drops the monotonic reading, which no expectation has.
func round(st shaper.Stats) shaper.Stats {
	st.HeldUntil = st.HeldUntil.Round(0)
	return st
}

// Whoever becomes head while all timers are stopped must get one.
func TestEveryWayToBecomeHeadArmsTheTimer(t *testing.T) {
	for name, change := range map[string]func(s *shaper.Shaper, cancelHead func()){
		"cancel": func(_ *shaper.Shaper, cancelHead func()) { cancelHead() },
		"pause":  func(s *shaper.Shaper, _ func()) { s.Pause(); s.Resume() },
		"hold":   func(s *shaper.Shaper, _ func()) { s.HoldUntil(time.Now().Add(ms)) },
		"rate":   func(s *shaper.Shaper, _ func()) { _ = s.SetRate(scheduler.PerSecond(11)) },
		"all": func(s *shaper.Shaper, cancelHead func()) {
			s.Pause()
			cancelHead()
			_ = s.SetRate(scheduler.PerSecond(11))
			s.HoldUntil(time.Now().Add(ms))
			s.Resume()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShaper(t, scheduler.PerSecond(10))
				r := newRecorder()
				r.wait(t.Context(), s)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				r.wait(ctx, s)
				r.wait(t.Context(), s)
				r.until(50 * ms)
				change(s, cancel)
				pass(time.Minute)
				assert.Zero(t, s.Stats().Waiting)
			})
		})
	}
}

// Each departure wakes the goroutine that leaves and no other, however many wait.
func TestOneWakePerDeparture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10))
		const waiting, departures = 200, 50
		require.NoError(t, s.Wait(t.Context()))
		var wakes atomic.Int64
		for range waiting {
			go func() { _ = s.Wait(countingContext{t.Context(), &wakes}) }()
		}
		synctest.Wait()
		asleep := wakes.Load()
		pass(departures * 100 * ms)
		// A caller asks its context for Done each time before it sleeps, so one that
		// was woken and has not left asks again. Here only those who leave on their
		// own timer do, once.
		assert.LessOrEqual(t, wakes.Load()-asleep, int64(departures))
		assert.EqualValues(t, departures+1, s.Stats().Left)
		require.NoError(t, s.Close())
	})
}

// The timer of a call that has gone must not fire for whoever waits next in its
// place.
func TestNoTimerOutlivesItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10))
		r := newRecorder()
		r.wait(t.Context(), s)
		ctx, cancel := context.WithCancel(t.Context())
		r.wait(ctx, s)
		r.wait(t.Context(), s)
		r.until(50 * ms)
		cancel()
		synctest.Wait()
		var sleeps atomic.Int64
		r.wait(countingContext{t.Context(), &sleeps}, s)
		pass(time.Minute)
		assert.Equal(t, steps(0, 100*ms, 3), r.left())
		assert.EqualValues(t, 2, sleeps.Load(), "on arrival, and when its own timer fired")
	})
}

func TestNoAlarmWhileNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fired := atomic.Int64{}
		s := newShaper(t, scheduler.PerSecond(10), shaper.WithClock(alarms{clock.New(), &fired}))
		r := newRecorder()
		ctx, cancel := context.WithCancel(t.Context())
		for range 4 {
			r.wait(ctx, s)
		}
		pass(150 * ms)
		cancel()
		pass(time.Hour)
		assert.EqualValues(t, 1, fired.Load(), "for the one that left at 100 ms")
	})
}

// alarms counts the alarms that fire.
type alarms struct {
	clock.Clock
	fired *atomic.Int64
}

func (a alarms) AfterFunc(d time.Duration, f func()) *clock.Timer {
	return a.Clock.AfterFunc(d, func() { a.fired.Add(1); f() })
}

func TestRefusalTellsWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(1), shaper.WithMaxDelay(ms))
		require.NoError(t, s.Wait(t.Context()))
		err := s.Wait(t.Context())
		assert.EqualError(t, err, "shaper: wait exceeds the maximum delay (cost 1, would wait 1s)")
		var delayed interface{ WouldWait() time.Duration }
		require.ErrorAs(t, err, &delayed)
		assert.Equal(t, time.Second, delayed.WouldWait())
		assert.EqualError(t, s.WaitN(t.Context(), -1), "shaper: cost out of range (cost -1)")
	})
}

// countingContext counts how often a caller goes to sleep on it.
type countingContext struct {
	context.Context
	sleeps *atomic.Int64
}

func (c countingContext) Done() <-chan struct{} {
	c.sleeps.Add(1)
	return c.Context.Done()
}
