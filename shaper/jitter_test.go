package shaper_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/trial"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// A wall is a clock whose reading is off by what the function says. Its timers go by the
// time that really passes.
type wall struct {
	clock.Clock
	mu  sync.Mutex
	off func() time.Duration
}

func wallClock(off func() time.Duration) *wall { return &wall{Clock: clock.New(), off: off} }

func (w *wall) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Round(0).Add(w.off()) // without a monotonic reading
}

func (w *wall) Since(t time.Time) time.Duration { return w.Now().Sub(t) }
func (w *wall) Until(t time.Time) time.Duration { return t.Sub(w.Now()) }

// takers are what a caller may ask on such a clock.
func takers(t *testing.T, r scheduler.Rate, w *wall, opts ...shaper.Option) map[string]func() bool {
	opts = append(opts, shaper.WithClock(w))
	strict, err := scheduler.NewGCRA(r, 1) // tells a tolerance of 0
	require.NoError(t, err)
	from, err := shaper.NewFrom(strict, shaper.WithClock(w))
	require.NoError(t, err)
	g := newGroup[string](t, r, opts...)
	return map[string]func() bool{
		"Shaper":     newShaper(t, r, opts...).Allow,
		"NewFrom":    from.Allow,
		"without J":  newShaper(t, r, append(opts, shaper.WithTolerance(0))...).Allow,
		"idle key":   func() bool { return g.Allow("a") },
		"all limits": newShaper(t, r, append(opts, shaper.WithLimits(must(scheduler.NewSlidingLog(1, r.Interval()))))...).Allow,
	}
}

// Two sources of time that differ by a little let no call leave while no time passes.
func TestClockThatDiffersPerReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ahead := false
		w := wallClock(func() time.Duration {
			ahead = !ahead
			if ahead {
				return 700 * time.Microsecond
			}
			return 0
		})
		for name, take := range takers(t, scheduler.PerSecond(8), w) {
			assert.True(t, take(), name)
			for range 1500 {
				assert.False(t, take(), name)
			}
		}
	})
}

// A clock that is behind by less than the tolerance is waited for, and no longer.
func TestShortStepBackIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var off time.Duration
		w := wallClock(func() time.Duration { return off })
		for name, take := range takers(t, scheduler.PerSecond(10), w) {
			off = 0
			pass(time.Minute)
			assert.True(t, take(), name)
			assert.False(t, take(), name)
			off = -4 * ms
			assert.False(t, take(), name)
			pass(104*ms - 1)
			assert.False(t, take(), name)
			pass(1)
			assert.True(t, take(), name)
		}
	})
}

// A longer step back counts as no time passed, whatever else the clock is behind by then.
func TestLongStepBackIsNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, step := range []time.Duration{5 * ms, 6 * ms, time.Hour, 100 * 365 * 24 * time.Hour} {
			var off time.Duration
			w := wallClock(func() time.Duration { return off })
			for name, take := range takers(t, scheduler.PerSecond(10), w) {
				pass(time.Minute)
				off -= step // what all of them see, and have the answer at once
				take()
				pass(time.Minute)
				assert.True(t, take(), name)
				off -= 3 * ms // held
				assert.False(t, take(), name)
				off -= step
				assert.False(t, take(), name)
				pass(103*ms - 1)
				assert.False(t, take(), "%s, step %v", name, step)
				pass(1)
				assert.True(t, take(), "%s, step %v", name, step)
			}
		}
	})
}

// A clock that goes back all the time, in steps that are short, holds calls while it does,
// and for no longer than the tolerance after that.
func TestShortStepsBackDoNotAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var off time.Duration
		w := wallClock(func() time.Duration { return off })
		for name, take := range takers(t, scheduler.PerSecond(100), w) {
			assert.True(t, take(), name)
			for range 1000 {
				pass(ms)
				off -= 2 * ms
				assert.False(t, take(), name)
			}
			left, asked := 0, time.Now()
			for range 1000 {
				pass(ms)
				if take() {
					left++
				}
			}
			assert.GreaterOrEqual(t, left, int((time.Since(asked)-5*ms)/(10*ms)), name)
		}
	})
}

// Over hours of a clock that jitters by less than the tolerance, calls leave in the shape
// that the rate allows in the time that really passes, and those of a line that never runs
// dry lose no more than the jitter.
func TestJitterIsNoTime(t *testing.T) {
	trial.Run(t, 60, func(t *testing.T, rng *rand.Rand) {
		synctest.Test(t, func(t *testing.T) {
			const tolerance = 5 * ms
			rate := scheduler.PerSecond([]int64{10, 100, 333, 1000}[rng.IntN(4)])
			burst := 1 + rng.IntN(2)*rng.IntN(4)
			jitter := time.Duration(1 + rng.Int64N(int64(tolerance-1)))
			readings := rand.New(rand.NewPCG(rng.Uint64(), 0))
			s := newShaper(t, rate, shaper.WithBurst(burst), shaper.WithTolerance(tolerance),
				shaper.WithClock(wallClock(func() time.Duration { return time.Duration(readings.Int64N(int64(jitter))) })))
			r := newRecorder()
			for range 1000 {
				switch rng.IntN(8) {
				case 0, 1:
					r.wait(t.Context(), s)
				case 2:
					time.Sleep(time.Duration(rng.Int64N(int64(time.Minute))))
				case 3:
					time.Sleep(time.Duration(rng.Int64N(int64(2 * rate.Interval()))))
				default:
					r.submit(func() error { return taken(s.Allow()) })
				}
			}
			pass(time.Hour)
			first := len(r.left())
			for range 201 {
				r.wait(t.Context(), s)
			}
			pass(time.Hour)
			left := r.left()
			slices.Sort(left)
			assert.LessOrEqual(t, left[first+200]-left[first], rate.For(200)+jitter)
			// The readings at both ends of a window may be off, and a claim goes back by a tolerance.
			assertShape(t, left, rate, burst, tolerance+jitter)
		})
	})
}

var errNotNow = errors.New("it may not leave now")

// taken returns an error if a call may not leave.
func taken(ok bool) error {
	if !ok {
		return errNotNow
	}
	return nil
}

// Readers that meet see one time, which does not go back.
func TestJitterForManyReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		readings := rand.New(rand.NewPCG(1, 2))
		w := wallClock(func() time.Duration { return time.Duration(readings.Int64N(int64(4 * ms))) })
		for name, take := range takers(t, scheduler.PerSecond(10), w) {
			counts := make(chan int)
			for range 8 {
				go func() {
					left := 0
					for range 1000 {
						time.Sleep(time.Duration(1 + left))
						if take() {
							left++
						}
					}
					counts <- left
				}()
			}
			all := 0
			for range 8 {
				all += <-counts
			}
			assert.Equal(t, 1, all, name) // within a few microseconds
		}
	})
}
