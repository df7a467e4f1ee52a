package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/schedulertest"
)

// most is the promise: max(B, c) + floor((w+J)/T) units in a closed window of length w,
// where c is the largest cost, and w counts as less than 1 ns longer if T is no whole
// number of nanoseconds.
func most(r scheduler.Rate, burst, largest int64, w, j time.Duration) int64 {
	units, period := r.Units(), int64(r.Period())
	for d := period; d > 1; d /= 10 { // lowest terms, as far as a factor is a power of ten
		if units%d == 0 && period%d == 0 {
			units, period = units/d, period/d
			break
		}
	}
	// The largest m with m·T below w+J+1; with a whole T that is m·T up to w+J.
	m := (int64(w+j+1)*units - 1) / period
	return max(burst, largest) + m
}

func TestGCRABoundForAllCosts(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	for _, rate := range []scheduler.Rate{scheduler.PerSecond(10), scheduler.PerSecond(3), scheduler.PerSecond(7), scheduler.PerMinute(1)} {
		for _, burst := range []int64{1, 5, 50} {
			for _, j := range []time.Duration{0, 5 * time.Millisecond, time.Second} {
				for _, largest := range []int64{1, burst, burst + 1, 3*burst + 10} {
					name := fmt.Sprintf("%v, burst %d, tolerance %v, costs up to %d", rate, burst, j, largest)
					t.Run(name, func(t *testing.T) {
						g := newGCRA(t, rate, burst, scheduler.WithTolerance(j))
						left := leaveLate(rng, g, rate, j, largest)
						checkBound(t, left, func(largest int64, w time.Duration) int64 { return most(rate, burst, largest, w, j) })
					})
				}
			}
		}
	}
}

// leaveLate lets calls of random costs leave, late by up to the tolerance and now and
// then by more, in spells that are dense or idle.
func leaveLate(rng *rand.Rand, g *scheduler.GCRA, rate scheduler.Rate, j time.Duration, largest int64) []schedulertest.Departure {
	left := make([]schedulertest.Departure, 0, 300)
	now, at := origin, origin
	for len(left) < cap(left) {
		n := 1 + rng.Int64N(largest)
		due := g.Next(now, 0, n)
		late := time.Duration(rng.Int64N(int64(j) + 1))
		switch rng.IntN(10) {
		case 0:
			late = j
		case 1:
			late += time.Duration(rng.Int64N(int64(3 * rate.Interval())))
		}
		at = later(at, due.Add(late))
		g.Commit(due, at, n)
		left = append(left, schedulertest.Departure{At: at, N: n})
		if rng.IntN(20) == 0 {
			now = at.Add(time.Duration(rng.Int64N(int64(rate.For(2 * largest)))))
		}
	}
	return left
}

// checkBound looks at every closed window that begins and ends with a departure.
func checkBound(t *testing.T, left []schedulertest.Departure, most func(largest int64, w time.Duration) int64) {
	t.Helper()
	for i := range left {
		var units, largest int64
		for _, d := range left[i:] {
			units, largest = units+d.N, max(largest, d.N)
			if w := d.At.Sub(left[i].At); units > most(largest, w) {
				t.Fatalf("%d units within %v, want at most %d", units, w, most(largest, w))
			}
		}
	}
}

// The bound is reached: all have waited since the origin, the timer is late by the
// tolerance once, and the call with the largest cost is the last.
func TestGCRABoundIsReached(t *testing.T) {
	rate := scheduler.PerSecond(10)
	for _, burst := range []int64{1, 5, 50} {
		for _, j := range []time.Duration{0, 100 * time.Millisecond, time.Second} {
			for _, largest := range []int64{1, burst, burst + 1, 3*burst + 10} {
				g := newGCRA(t, rate, burst, scheduler.WithTolerance(j))
				first := origin.Add(j)
				units := 3*burst + 20
				for range units {
					due := g.Next(origin, 0, 1)
					g.Commit(due, later(due, first), 1)
				}
				last := g.Next(origin, 0, largest)
				units += largest
				assert.Equal(t, most(rate, burst, largest, last.Sub(first), j), units, "burst %d, tolerance %v, largest cost %d", burst, j, largest)
			}
		}
	}
}

// Two calls of 10 at one a second: 20 units in the closed 10 s.
func TestGCRABoundOfTwoLargeCalls(t *testing.T) {
	g := newGCRA(t, scheduler.PerSecond(1), 1)
	g.Commit(origin, origin, 10)
	assert.Equal(t, origin.Add(10*time.Second), g.Next(origin, 0, 10))
	assert.EqualValues(t, 20, most(scheduler.PerSecond(1), 1, 10, 10*time.Second, 0))
}
