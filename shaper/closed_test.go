package shaper_test

import (
	"context"
	"math/rand/v2"
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

// A bubble begins at midnight UTC, 1 January 2000.

// Open from 00:00 to 01:00. The head is due within the hour, and its timer fires two hours
// late: it waits for the next day, and the call behind it leaves T later.
func TestLateTimerLetsNothingLeaveInAClosedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hours := scheduler.Must(scheduler.NewHours(time.UTC, 0, time.Hour))
		s := newShaper(t, scheduler.Every(10*time.Minute), shaper.WithLimits(hours), shaper.WithClock(lateOnce(2*time.Hour)))
		r := newRecorder()
		for range 3 {
			r.wait(t.Context(), s)
		}
		r.until(3 * time.Hour)
		assert.Equal(t, r.start.Add(24*time.Hour), s.Stats().NextDue)
		assert.Equal(t, 24*time.Hour+20*time.Minute-3*time.Hour, s.Delay())
		assert.False(t, s.Allow())
		pass(48 * time.Hour)
		assert.Equal(t, []time.Duration{0, 24 * time.Hour, 24*time.Hour + 10*time.Minute}, r.left())
	})
}

// A closedRun has calls come, go and be held at random, before limits with closed times.
type closedRun struct {
	rng     *rand.Rand
	r       *recorder
	s       *shaper.Shaper
	hours   [2]time.Duration // open from and to
	cancels []context.CancelFunc
}

func newClosedRun(t *testing.T, rng *rand.Rand) *closedRun {
	c := &closedRun{rng: rng, r: newRecorder()}
	c.hours = [2]time.Duration{time.Duration(rng.IntN(24)) * time.Hour, time.Duration(rng.IntN(25)) * time.Hour}
	if c.hours[0] == c.hours[1] {
		c.hours[1]++
	}
	hours := scheduler.Must(scheduler.NewHours(time.UTC, c.hours[0], c.hours[1]))
	opts := []shaper.Option{shaper.WithMaxInFlight(2)}
	if rng.IntN(3) > 0 {
		opts = append(opts, shaper.WithClock(sometimesLate{clock.New(), c.r.start, lateByHours(rng)}))
	}
	rate := scheduler.Every(time.Duration(1+rng.IntN(60)) * time.Minute)
	if rng.IntN(2) == 0 {
		gcra := scheduler.Must(scheduler.NewGCRA(rate, int64(1+rng.IntN(3)), scheduler.WithTolerance(time.Minute)))
		c.s = shaper.MustNewFrom(scheduler.All(hours, gcra), opts...)
	} else {
		c.s = newShaper(t, rate, append(opts, shaper.WithLimits(hours), shaper.WithBurst(1+rng.IntN(3)))...)
	}
	return c
}

// lateByHours is a rule, by the instant that a timer was set for: three in five are on time.
func lateByHours(rng *rand.Rand) func(due int64) time.Duration {
	salt := rng.Uint64()
	return func(due int64) time.Duration {
		rng := rand.New(rand.NewPCG(salt, uint64(due)))
		return max(0, time.Duration(rng.Int64N(int64(5*time.Hour)))-3*time.Hour)
	}
}

func (c *closedRun) upTo(d time.Duration) time.Duration { return time.Duration(c.rng.Int64N(int64(d))) }

func (c *closedRun) open(at time.Duration) bool {
	at %= 24 * time.Hour
	if c.hours[0] < c.hours[1] {
		return c.hours[0] <= at && at < c.hours[1]
	}
	return at >= c.hours[0] || at < c.hours[1]
}

func (c *closedRun) step(t *testing.T) {
	switch c.rng.IntN(12) {
	case 0:
		c.s.HoldUntil(time.Now().Add(c.upTo(5 * time.Hour)))
	case 1:
		c.s.Pause()
	case 2, 3:
		c.s.Resume()
	case 4:
		c.s.Charge(1)
	case 5:
		if len(c.cancels) > 0 {
			c.cancels[c.rng.IntN(len(c.cancels))]()
		}
	case 6:
		if c.s.AllowN(1 + c.rng.IntN(2)) {
			require.True(t, c.open(time.Since(c.r.start)), "Allow")
		}
	case 7:
		at := c.s.Delay() + time.Since(c.r.start)
		require.True(t, c.open(at), "Delay names %v", at)
	case 8:
		if c.s.Stats().InFlight > 0 {
			c.s.Release()
		}
	default:
		ctx, cancel := context.WithCancel(t.Context())
		if c.rng.IntN(3) == 0 {
			ctx, cancel = context.WithTimeout(t.Context(), c.upTo(30*time.Hour))
		}
		c.cancels = append(c.cancels, cancel)
		t.Cleanup(cancel)
		wait := c.s.WaitN
		if c.rng.IntN(3) == 0 {
			wait = c.s.Acquire
		}
		c.r.submit(func() error { return wait(ctx, 1+c.rng.IntN(3)) })
	}
	synctest.Wait()
}

// However late timers are, and whatever comes between: nothing leaves in a closed time.
func TestNothingLeavesInAClosedTime(t *testing.T) {
	left := 0
	trial.Run(t, 600, func(t *testing.T, rng *rand.Rand) {
		synctest.Test(t, func(t *testing.T) {
			c := newClosedRun(t, rng)
			for range 60 {
				c.step(t)
				pass(c.upTo(6 * time.Hour))
			}
			require.NoError(t, c.s.Close())
			for _, at := range c.r.left() {
				left++
				require.True(t, c.open(at), "one left at %v: open from %v to %v", at, c.hours[0], c.hours[1])
			}
		})
	})
	assert.Positive(t, left)
}
