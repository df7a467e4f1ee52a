package shaper_test

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/trial"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

type departure struct {
	at   time.Duration
	cost int
}

// assertShapeOfCosts checks that no closed window holds more than
//
//	max(B, c) + floor((w+J)/T)
//
// units, c being the largest cost in it. The last call of a window is due at least
// TAT - (B - min(c, B))·T, and TAT counts all units of the window before it, from J before
// the first of them on.
func assertShapeOfCosts(t testing.TB, left []departure, r scheduler.Rate, burst int, tolerance time.Duration) {
	t.Helper()
	const rounding = 2 // departures, and the sums below, are rounded to nanoseconds
	slices.SortStableFunc(left, func(a, b departure) int { return cmp.Compare(a.at, b.at) })
	for i := range left {
		units, most := 0, burst
		for _, d := range left[i:] {
			units, most = units+d.cost, max(most, d.cost)
			w := d.at - left[i].at
			if over := units - most; over > 0 && r.For(int64(over)) > w+tolerance+rounding {
				t.Fatalf("%d units left within %v at rate %v, burst %d, tolerance %v, largest cost or burst %d",
					units, w, r, burst, tolerance, most)
			}
		}
	}
}

// Costs above the burst, late timers, stalls, holds and cancels: no window holds more than
// the shape of costs allows.
func TestPromise1ShapeOfCosts(t *testing.T) {
	trial.Run(t, 150, func(t *testing.T, rng *rand.Rand) {
		synctest.Test(t, func(t *testing.T) {
			rate := scheduler.Per([]int64{1, 3, 7, 60, 333}[rng.IntN(5)], randomPeriod(rng))
			burst, tolerance := 1+rng.IntN(5), time.Duration(rng.IntN(2))*5*ms
			upTo := func(n int64) time.Duration { return time.Duration(rng.Int64N(n * int64(rate.Interval()))) }
			lateness := rand.New(rand.NewPCG(rng.Uint64(), 0))
			s := newShaper(t, rate, shaper.WithBurst(burst), shaper.WithTolerance(tolerance),
				shaper.WithClock(lateClock(func() time.Duration {
					if lateness.IntN(20) == 0 {
						return time.Duration(lateness.Int64N(int64(20 * rate.Interval()))) // a stopped process
					}
					return time.Duration(lateness.Int64N(int64(2*tolerance) + 1))
				})))
			var mu sync.Mutex
			var left []departure
			r := newRecorder()
			for range 100 {
				cost := 1 + rng.IntN(2)*rng.IntN(3*burst) + rng.IntN(12)/11*rng.IntN(40)
				ctx := t.Context()
				switch rng.IntN(9) {
				case 0:
					pass(upTo(100))
					continue
				case 1:
					s.HoldUntil(time.Now().Add(upTo(5)))
					continue
				case 2:
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, upTo(20))
					defer cancel()
				}
				take := func() error { return s.WaitN(ctx, cost) }
				if rng.IntN(4) == 0 {
					take = func() error { return taken(s.AllowN(cost)) }
				}
				r.submit(func() error {
					err := take()
					if err == nil {
						mu.Lock()
						defer mu.Unlock()
						left = append(left, departure{time.Since(r.start), cost})
					}
					return err
				})
			}
			pass(10_000 * time.Hour)
			assert.Greater(t, len(left), 20)
			assertShapeOfCosts(t, left, rate, burst, tolerance)
			conserved(t, s)
		})
	})
}

// The bound is attained: 20 units in a closed 10 s at 1/s, in two calls of 10.
func TestShapeOfCostsIsAttained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(1))
		r := newRecorder()
		for range 3 {
			r.submit(func() error { return s.WaitN(t.Context(), 10) })
		}
		require.EqualValues(t, 2, s.Stats().Waiting)
		pass(time.Minute)
		assert.Equal(t, steps(0, 10*time.Second, 3), r.left())
	})
}
