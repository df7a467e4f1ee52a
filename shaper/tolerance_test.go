package shaper_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/trial"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// The tolerance is for late timers. With timers that are exact it changes nothing: the same
// calls and changes end alike with none, with 5 ms and with hours, for a Shaper and for a
// key of a Group.
func TestPromise15ToleranceIsForLateTimersOnly(t *testing.T) {
	trial.Run(t, 300, func(t *testing.T, rng *rand.Rand) {
		synctest.Test(t, func(t *testing.T) { newToleranceRun(t, rng).play() })
	})
}

// A toleranceRun lets the same happen to pacers that differ in their tolerance alone.
type toleranceRun struct {
	t       *testing.T
	rng     *rand.Rand
	start   time.Time
	pacers  []pacer
	burst   int
	places  bool
	t0      time.Duration // T at the start
	cancels []context.CancelFunc
	calls   [][]string // how each ended, for each pacer
	about   string
}

func toleranceRate(rng *rand.Rand) scheduler.Rate {
	return []scheduler.Rate{scheduler.Per(333, 250*ms), scheduler.PerSecond(10), scheduler.PerSecond(3), scheduler.PerSecond(1000)}[rng.IntN(4)]
}

func newToleranceRun(t *testing.T, rng *rand.Rand) *toleranceRun {
	rate := toleranceRate(rng)
	r := &toleranceRun{t: t, rng: rng, start: time.Now(), t0: rate.Interval()}
	r.burst = 1 + rng.IntN(2)*rng.IntN(5)
	opts := []shaper.Option{shaper.WithBurst(r.burst), shaper.WithQueue([]int{4, 1024}[rng.IntN(2)])}
	if r.places = rng.IntN(2) == 0; r.places {
		opts = append(opts, shaper.WithMaxInFlight(1+rng.IntN(2)))
	}
	for _, tolerance := range []time.Duration{0, 5 * ms, 3 * time.Hour} {
		opts := append(slices.Clone(opts), shaper.WithTolerance(tolerance))
		r.pacers = append(r.pacers, newShaper(t, rate, opts...), newKey(t, rate, opts...))
	}
	r.about = fmt.Sprintf("rate %v burst %d places %v", rate, r.burst, r.places)
	return r
}

func (r *toleranceRun) play() {
	for range 40 {
		if r.rng.IntN(3) > 0 {
			time.Sleep(r.upTo(2))
		}
		synctest.Wait()
		r.step()
		synctest.Wait()
	}
	for _, p := range r.pacers {
		p.Resume()
	}
	pass(1000 * time.Hour)
	for i, ends := range r.calls {
		for _, end := range ends {
			require.Equal(r.t, ends[0], end, "call %d of %d: %s", i, len(r.calls), r.about)
		}
	}
}

// upTo returns a time of up to n intervals.
func (r *toleranceRun) upTo(n int64) time.Duration {
	return time.Duration(r.rng.Int64N(n * int64(r.t0)))
}

// cost returns that of a call; some are above the burst.
func (r *toleranceRun) cost() int {
	if r.rng.IntN(15) == 0 {
		return r.burst + r.rng.IntN(10)
	}
	return 1 + r.rng.IntN(2)*r.rng.IntN(r.burst+1)
}

func (r *toleranceRun) step() {
	switch r.rng.IntN(18) {
	case 0:
		rate := toleranceRate(r.rng)
		r.all(func(p pacer) any { return p.SetRate(rate) })
	case 1:
		until := time.Now().Add(r.upTo(4))
		r.all(func(p pacer) any { p.HoldUntil(until); return nil })
	case 2, 3:
		r.all(func(p pacer) any { p.Resume(); return nil })
	case 4:
		r.all(func(p pacer) any { p.Pause(); return nil })
	case 5:
		cost := r.cost()
		r.all(func(p pacer) any { p.Charge(cost); return nil })
	case 6:
		num := 1 + r.rng.Int64N(4)
		r.all(func(p pacer) any { return p.Scale(num, 4) })
	case 7:
		cost := r.cost()
		r.all(func(p pacer) any { return p.AllowN(cost) })
	case 8:
		r.all(func(p pacer) any { return p.Delay() })
	case 9, 10, 11:
		if len(r.cancels) > 0 {
			r.cancels[r.rng.IntN(len(r.cancels))]()
		}
	default:
		r.arrive()
	}
}

// all does the same to all pacers, and checks that they answer alike.
func (r *toleranceRun) all(f func(pacer) any) {
	r.t.Helper()
	var first any
	for i, p := range r.pacers {
		got := f(p)
		if i == 0 {
			first = got
		}
		require.Equal(r.t, first, got, "%T %d at %v: %s", p, i, time.Since(r.start), r.about)
		synctest.Wait() // what this lets leave, leaves in the same order for all
	}
}

func (r *toleranceRun) arrive() {
	cost, place, lasts := r.cost(), r.places && r.rng.IntN(2) == 0, r.upTo(20)
	ctx, cancel := context.WithCancel(r.t.Context())
	if r.rng.IntN(4) == 0 {
		ctx, cancel = context.WithTimeout(r.t.Context(), r.upTo(8))
	}
	r.t.Cleanup(cancel)
	if r.rng.IntN(4) == 0 {
		ctx = shaper.WithArrival(ctx, time.Now().Add(-r.upTo(4)))
	}
	r.cancels = append(r.cancels, cancel)
	ends := make([]string, len(r.pacers))
	r.calls = append(r.calls, ends)
	for i, p := range r.pacers {
		go func() {
			wait := p.WaitN
			if place {
				wait = p.Acquire
			}
			err := wait(ctx, cost)
			ends[i] = fmt.Sprintf("after %v: %v", time.Since(r.start), err)
			if place && err == nil {
				time.Sleep(lasts)
				p.Release()
			}
		}()
		synctest.Wait()
	}
}
