package shaper_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/trial"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// Random arrivals, idle spells, holds, cancels and stalls: whatever happens, no
// window holds more than the shape allows.
func TestPromise1Shape(t *testing.T) {
	trial.Run(t, 100, func(t *testing.T, rng *rand.Rand) {
		synctest.Test(t, func(t *testing.T) {
			rate := scheduler.Per([]int64{1, 3, 7, 60, 333}[rng.IntN(5)], randomPeriod(rng))
			burst, tolerance := 1+rng.IntN(5), time.Duration(rng.IntN(2))*5*ms
			lateness := rand.New(rand.NewPCG(rng.Uint64(), 0))
			s := newShaper(t, rate, shaper.WithBurst(burst), shaper.WithTolerance(tolerance),
				shaper.WithClock(lateClock(func() time.Duration {
					if lateness.IntN(20) == 0 {
						return time.Duration(lateness.Int64N(int64(20 * rate.Interval()))) // a stopped process
					}
					return time.Duration(lateness.Int64N(int64(2*tolerance) + 1))
				})))
			r := newRecorder()
			for range 100 {
				switch rng.IntN(8) {
				case 0:
					pass(time.Duration(rng.Int64N(int64(30 * rate.Interval()))))
				case 1:
					s.HoldUntil(time.Now().Add(time.Duration(rng.Int64N(int64(5 * rate.Interval())))))
				case 2:
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.Int64N(int64(5*rate.Interval()))))
					defer cancel()
					r.wait(ctx, s)
				default:
					r.wait(t.Context(), s)
				}
			}
			pass(1000 * time.Hour)
			left := r.left()
			slices.Sort(left)
			assert.Greater(t, len(left), 20)
			assertShape(t, left, rate, burst, tolerance)
		})
	})
}

func TestPromise2NeverEarly(t *testing.T) {
	// On the real clock: lower bounds only.
	s := newShaper(t, scheduler.PerSecond(500), shaper.WithTolerance(0))
	start := time.Now()
	for i := range 50 {
		require.NoError(t, s.Wait(t.Context()))
		assert.GreaterOrEqual(t, time.Since(start), time.Duration(i)*2*ms)
	}
}

func TestPromise3Order(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10), shaper.WithBurst(3))
		r := newRecorder()
		r.submit(func() error { return s.WaitN(t.Context(), 3) })
		big := r.submit(func() error { return s.WaitN(t.Context(), 3) }) // due at 300 ms
		r.until(150 * ms)                                                // a unit is free
		assert.False(t, s.Allow(), "Allow overtakes")
		small := r.wait(t.Context(), s)
		pass(time.Second)
		assert.Equal(t, 300*ms, big.at)
		assert.Equal(t, 400*ms, small.at)
	})
}

func TestPromise4NoSlotIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10))
		r := newRecorder()
		var cancels []context.CancelFunc
		for range 10 {
			ctx, cancel := context.WithCancel(t.Context())
			cancels = append(cancels, cancel)
			r.wait(ctx, s)
		}
		r.until(50 * ms)
		for _, i := range []int{1, 3, 4, 9} { // the head, the middle, the tail
			cancels[i]()
		}
		pass(time.Hour)
		assert.Equal(t, steps(0, 100*ms, 6), r.left())
		for _, cancel := range cancels {
			cancel()
		}
	})
}

func TestPromise5Earliest(t *testing.T) {
	for _, tt := range []struct {
		rate  scheduler.Rate
		count int
		over  time.Duration
	}{
		{scheduler.PerSecond(3), 10_800, time.Hour},
		{scheduler.PerSecond(7), 60_480, 144 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newShaper(t, tt.rate, shaper.WithClock(lateClock(func() time.Duration { return ms })))
			start := time.Now()
			var left atomic.Int64
			done := make(chan struct{})
			for range 4 {
				go func() {
					for s.Wait(t.Context()) == nil && time.Since(start) < tt.over {
						left.Add(1)
					}
					done <- struct{}{}
				}()
			}
			for range 4 {
				<-done
			}
			assert.EqualValues(t, tt.count, left.Load(), "within %v", tt.over)
		})
	}
}

// A caller in a loop is woken late each time and comes back late. The schedule
// makes up for it, within the tolerance and the shape, and for no idle time.
func TestPromise5EarliestForOneCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rate := scheduler.PerSecond(10_000)
		s := newShaper(t, rate, shaper.WithClock(lateClock(func() time.Duration { return ms })))
		start := time.Now()
		var left []time.Duration
		for time.Since(start) < time.Second {
			require.NoError(t, s.Wait(t.Context()))
			left = append(left, time.Since(start))
		}
		assert.InDelta(t, 10_000, len(left), 15)
		assertShape(t, left, rate, 1, 5*ms)

		pass(2 * ms) // longer than the last departure was late
		for range 20 {
			s.Allow()
		}
		st := s.Stats()
		assert.EqualValues(t, len(left)+1, st.Left, "no burst after an idle spell, however short")
	})
}

// What was missed in a stall longer than the tolerance is lost, also for the calls
// that come after it.
func TestPromise5StallIsNotCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stall := 10 * time.Second
		s := newShaper(t, scheduler.PerSecond(10), shaper.WithClock(lateClock(func() time.Duration { return stall })))
		require.NoError(t, s.Wait(t.Context()))
		require.NoError(t, s.Wait(t.Context())) // due at 0.1 s, left at 10.1 s
		stall = 0
		pass(500 * ms)
		r := newRecorder()
		r.wait(t.Context(), s)
		r.wait(t.Context(), s)
		pass(time.Minute)
		assert.Equal(t, steps(0, 100*ms, 2), r.left())
	})
}

func TestPromise6Bounded(t *testing.T) {
	for _, capacity := range []int{1, 2, 5, 100} {
		synctest.Test(t, func(t *testing.T) {
			s := newShaper(t, scheduler.PerSecond(3), shaper.WithQueue(capacity))
			r := newRecorder()
			for range capacity + 5 {
				r.wait(t.Context(), s)
			}
			pass(time.Hour)
			assert.Len(t, r.left(), capacity)
			for _, c := range r.calls[capacity:] {
				assert.ErrorIs(t, c.err, shaper.ErrQueueFull)
				assert.Zero(t, c.at, "refused on arrival")
			}
		})
	}
}

// A line that stands still for a pause holds as many calls as it may.
func TestPromise6BoundedWhilePaused(t *testing.T) {
	for _, rate := range []scheduler.Rate{scheduler.PerSecond(10), scheduler.Unlimited} {
		synctest.Test(t, func(t *testing.T) {
			s := newShaper(t, rate, shaper.WithQueue(5))
			s.Pause()
			r := newRecorder()
			for range 8 {
				r.wait(t.Context(), s)
			}
			assert.EqualValues(t, 5, s.Stats().Waiting)
			s.Resume()
			pass(time.Minute)
			assert.Len(t, r.left(), 5)
		})
	}
}

func TestPromise7ToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(1))
		require.NoError(t, s.Wait(t.Context()))
		for _, patience := range []time.Duration{300 * ms, time.Second} {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			start := time.Now()
			err := s.Wait(ctx)
			cancel()
			assert.Zero(t, time.Since(start))
			var refusal *shaper.Refusal
			require.ErrorAs(t, err, &refusal)
			assert.Equal(t, shaper.Refusal{Reason: shaper.ErrDeadline, Cost: 1, Delay: time.Second}, *refusal)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.True(t, os.IsTimeout(err))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second+1)
		defer cancel()
		start := time.Now()
		assert.NoError(t, s.Wait(ctx), "the refused took no slot")
		assert.Equal(t, time.Second, time.Since(start))
	})
}

// Grants, cancels, deadlines, refusals, Allow and Close meet at random.
func TestPromise8OneOutcome(t *testing.T) {
	s := newShaper(t, scheduler.PerSecond(20_000), shaper.WithQueue(64))
	const callers, rounds = 16, 200
	outcomes := make(chan error, callers*rounds)
	for i := range callers {
		go func() {
			rng := rand.New(rand.NewPCG(uint64(i), 0))
			for range rounds {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(2000))*time.Microsecond)
				if rng.IntN(3) == 0 {
					go cancel()
				}
				outcomes <- s.WaitN(ctx, 1+rng.IntN(2))
				cancel()
			}
		}()
	}
	var left, cancelled, refused int64
	for n := range callers * rounds {
		var refusal *shaper.Refusal
		switch err := <-outcomes; {
		case err == nil:
			left++
		case errors.As(err, &refusal):
			refused++
		case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
			cancelled++
		default:
			t.Errorf("unexpected outcome %v", err)
		}
		if n == callers*rounds*3/4 {
			require.NoError(t, s.Close())
		}
		conserved(t, s)
	}
	st := s.Stats()
	assert.Equal(t, []int64{left, cancelled, refused, 0}, []int64{st.Left, st.Cancelled, st.Refused, st.Waiting})
	assert.NotZero(t, left)
	assert.NotZero(t, cancelled)
	assert.NotZero(t, refused)
}

func TestPromise9ChangesReachEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10), shaper.WithBurst(1))
		r := newRecorder()
		for range 7 {
			r.wait(t.Context(), s) // left[0] at 0
		}
		r.until(150 * ms) // left[1] at 100; half a unit is owed
		require.NoError(t, s.SetRate(scheduler.PerSecond(5)))
		r.until(300 * ms) // left[2] at 250
		s.Pause()
		r.until(2 * time.Second)
		s.Resume() // left[3] at 2000
		r.until(2100 * ms)
		s.HoldUntil(r.start.Add(3 * time.Second))
		s.HoldUntil(r.start.Add(2500 * ms)) // moves nothing back
		pass(time.Minute)
		assert.Equal(t, []time.Duration{0, 100 * ms, 250 * ms, 2 * time.Second,
			3 * time.Second, 3200 * ms, 3400 * ms}, r.left())
	})
}

// A hold or a pause saves no burst up, and one that makes a deadline impossible is
// told at once.
func TestPromise9ResumesEvenly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10), shaper.WithBurst(5))
		r := newRecorder()
		s.HoldUntil(r.start.Add(time.Minute))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		impatient := r.wait(ctx, s)
		for range 3 {
			r.wait(t.Context(), s)
		}
		assert.Equal(t, time.Minute+400*ms, s.Delay(), "of a newcomer")
		r.until(10 * time.Second)
		s.HoldUntil(r.start.Add(3 * time.Minute))
		synctest.Wait()
		assert.ErrorIs(t, impatient.err, shaper.ErrDeadline)
		assert.Equal(t, 10*time.Second, impatient.at)
		pass(time.Hour)
		assert.Equal(t, steps(3*time.Minute, 100*ms, 3), r.left())
	})
}

func TestPromise10IdleIsFree(t *testing.T) {
	const shapers = 100
	before := 0
	collected := make(chan struct{}, shapers)
	for i := range shapers {
		s := newShaper(t, scheduler.PerSecond(1000))
		require.NoError(t, s.Wait(t.Context()))
		require.NoError(t, s.Wait(t.Context())) // this one waits, on a timer
		runtime.AddCleanup(s, func(struct{}) { collected <- struct{}{} }, struct{}{})
		if i == 0 { // in WebAssembly the process starts a goroutine for its first timer
			before = alive()
		}
	}
	assert.LessOrEqual(t, alive(), before, "goroutines while idle")
	for range shapers { // dropped without Close, nothing holds them
		for tries := 0; len(collected) == 0 && tries < 1000; tries++ {
			runtime.GC()
			runtime.Gosched()
		}
		require.NotEmpty(t, collected, "something holds a Shaper that is not used")
		<-collected
	}
}
