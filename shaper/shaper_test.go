package shaper_test

import (
	"context"
	"errors"
	"math"
	"net"
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
		assert.Equal(t, []time.Duration{0, time.Second}, r.left(), "the waiting call goes on waiting")
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
		assert.Equal(t, shaper.Stats{Submitted: 4, Left: 1, Refused: 1, Waiting: 2, Units: 7, LeftUnits: 1,
			Rate: scheduler.PerSecond(10), Paused: true, HeldUntil: until}, round(s.Stats()))
		cancel()
		synctest.Wait()
		s.Resume()
		pass(time.Minute)
		assert.Equal(t, shaper.Stats{Submitted: 4, Left: 2, Refused: 1, Cancelled: 1, LeftUnits: 5, UnusedUnits: 595,
			Rate: scheduler.PerSecond(10)}, s.Stats())
	})
}

// round drops the monotonic reading, which no expectation has.
func round(st shaper.Stats) shaper.Stats {
	st.HeldUntil = st.HeldUntil.Round(0)
	return st
}

// A call that becomes head while all timers are stopped must get one.
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

// asked is a schedule that counts how often it is asked. A caller that is woken by
// its timer asks; one that is granted its turn does not.
type asked struct {
	*scheduler.GCRA
	times atomic.Int64
}

func (a *asked) Next(t time.Time, ahead, n int64) time.Time {
	a.times.Add(1)
	return a.GCRA.Next(t, ahead, n)
}

func newAsked(t testing.TB) (*asked, *shaper.Shaper) {
	t.Helper()
	a := &asked{GCRA: gcra(t, scheduler.PerSecond(10), 1)}
	s, err := shaper.NewFrom(a)
	require.NoError(t, err)
	return a, s
}

// Each departure wakes the goroutine that leaves and no other, however many wait: it
// asks for itself and for its heir, whose timer it arms.
func TestOneWakePerDeparture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		schedule, s := newAsked(t)
		const waiting, departures = 200, 50
		require.NoError(t, s.Wait(t.Context()))
		for range waiting {
			go func() { _ = s.Wait(t.Context()) }()
		}
		synctest.Wait()
		schedule.times.Store(0)
		pass(departures * 100 * ms)
		assert.EqualValues(t, departures+1, s.Stats().Left)
		assert.EqualValues(t, 2*departures, schedule.times.Load())
		require.NoError(t, s.Close())
	})
}

// The timer of a call that has gone must not fire for the call that waits next
// in its place.
func TestNoTimerOutlivesItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		schedule, s := newAsked(t)
		r := newRecorder()
		r.wait(t.Context(), s)
		ctx, cancel := context.WithCancel(t.Context())
		r.wait(ctx, s)
		r.wait(t.Context(), s)
		r.until(50 * ms)
		cancel()
		synctest.Wait()
		r.wait(t.Context(), s) // in the place of the one that has gone
		schedule.times.Store(0)
		pass(time.Minute)
		assert.Equal(t, steps(0, 100*ms, 3), r.left())
		assert.EqualValues(t, 3, schedule.times.Load(), "at 100 ms for two, at 200 ms for the last one")
	})
}

func TestNoAlarmWhileNoCallWaits(t *testing.T) {
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

		var held interface{ HeldUntil() time.Time }
		require.ErrorAs(t, err, &held)
		assert.Zero(t, held.HeldUntil(), "refused for the pace")
		until := time.Now().Add(time.Hour)
		s.HoldUntil(until)
		err = s.Wait(t.Context())
		require.ErrorAs(t, err, &held)
		assert.True(t, until.Equal(held.HeldUntil()), "refused for the hold")
		assert.ErrorContains(t, err, "would wait 1h0m0s, held until 2000-01-01T01:00:00")
	})
}

// A context is its user's code, which may well ask the Shaper something.
type curious struct {
	context.Context
	s *shaper.Shaper
}

func (c curious) Deadline() (time.Time, bool) { c.s.Stats(); return c.Context.Deadline() }
func (c curious) Done() <-chan struct{}       { c.s.Stats(); return c.Context.Done() }
func (c curious) Err() error                  { c.s.Stats(); return c.Context.Err() }

func TestNoUserCodeUnderTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10))
		r := newRecorder()
		for range 3 {
			r.wait(curious{t.Context(), s}, s)
		}
		pass(time.Minute)
		assert.Equal(t, steps(0, 100*ms, 3), r.left())
	})
}

// A window is as long as it is: calls that wait for the next one are no backlog.
func TestWindowsBoundTheLineByCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := shaper.NewFrom(must(scheduler.NewFixedWindow(2, 24*time.Hour)), shaper.WithQueue(3))
		require.NoError(t, err)
		r := newRecorder()
		for range 7 {
			r.wait(t.Context(), s)
		}
		assert.ErrorIs(t, r.calls[6].err, shaper.ErrQueueFull)
		pass(72 * time.Hour)
		assert.Equal(t, []time.Duration{0, 0, 24 * time.Hour, 24 * time.Hour, 48 * time.Hour}, r.left()[:5])
		assert.ErrorIs(t, r.calls[5].err, shaper.ErrQueueFull)
	})
}

// With a maximum delay of 0 no call waits, not even for the end of a pause.
func TestMaxDelayZeroWhilePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10), shaper.WithMaxDelay(0))
		s.Pause()
		assert.ErrorIs(t, s.Wait(t.Context()), shaper.ErrMaxDelay)
		s.Resume()
		assert.NoError(t, s.Wait(t.Context()))
	})
}

// A refusal is a net.Error.
func TestRefusalIsANetError(t *testing.T) {
	s := newShaper(t, scheduler.PerHour(1), shaper.WithMaxDelay(0))
	require.True(t, s.Allow())
	var ne net.Error
	require.ErrorAs(t, s.Wait(t.Context()), &ne)
	assert.True(t, ne.Timeout())
}

// Behind a gate the prediction knows that no burst was saved up.
func TestPredictionsAreEvenBehindAGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10), shaper.WithBurst(5))
		s.Pause()
		r := newRecorder()
		for range 3 {
			r.wait(t.Context(), s)
		}
		assert.Equal(t, 300*ms, s.Delay())
		ctx, cancel := context.WithTimeout(t.Context(), 250*ms)
		defer cancel()
		assert.ErrorIs(t, s.Wait(ctx), shaper.ErrDeadline)
		s.Resume()
		assert.Equal(t, 300*ms, s.Delay())
		pass(time.Minute)
		assert.Equal(t, steps(0, 100*ms, 3), r.left())
	})
}

// A call that arrives while the timer of the head is late lets all calls leave that are
// due, the head first.
func TestArrivalsServeAnOverdueHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10), shaper.WithTolerance(time.Second),
			shaper.WithClock(lateClock(func() time.Duration { return 10 * time.Second })))
		r := newRecorder()
		for range 3 {
			r.wait(t.Context(), s)
		}
		r.until(500 * ms)
		assert.True(t, s.Allow(), "500 ms hold six units, and two have waited")
		synctest.Wait()
		assert.Equal(t, []time.Duration{0, 500 * ms, 500 * ms}, r.left())
	})
}

// Lateness of before a hold is no claim on the time after it.
func TestNoCatchingUpAcrossAHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := 4 * ms
		s := newShaper(t, scheduler.PerSecond(100), shaper.WithClock(lateClock(func() time.Duration { return late })))
		r := newRecorder()
		r.wait(t.Context(), s)
		r.wait(t.Context(), s) // due at 10 ms, leaves at 14
		r.until(15 * ms)
		late = 0
		s.HoldUntil(r.start.Add(22 * ms))
		r.until(23 * ms)
		r.wait(t.Context(), s)
		r.wait(t.Context(), s)
		pass(time.Minute)
		assert.Equal(t, []time.Duration{0, 14 * ms, 23 * ms, 33 * ms}, r.left())
	})
}
