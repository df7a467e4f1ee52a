package shaper_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/oracle"
	"github.com/sluice-go/sluice/internal/trial"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// TestFluid compares random runs with an ideal fluid sharing in exact rationals that has a
// clock of its own and knows no tags: no call leaves later than the largest cost, in units of
// the account, after the fluid has finished it. More runs: SLUICE_RUNS=100000.
func TestFluid(t *testing.T) {
	worst := new(big.Rat)
	trial.Bubble(t, 150, func(t *testing.T, rng *rand.Rand) {
		f := newFluidRun(t, rng)
		f.play()
		if f.worst.Cmp(worst) > 0 {
			worst = f.worst
		}
		bound := oracle.Instant(f.largest)
		bound.Add(bound, big.NewRat(1, 1000))
		assert.LessOrEqual(t, f.worst.Cmp(bound), 0, "%s units late of %d: %s", f.worst.FloatString(3), f.largest, f.about)
	})
	t.Logf("at worst %s units late", worst.FloatString(3))
}

// A fluidRun lets the same happen to an account with weighted keys and to the fluid.
type fluidRun struct {
	t       *testing.T
	rng     *rand.Rand
	start   time.Time
	account *shaper.Shaper
	group   *shaper.Group[int]
	weights []int
	largest int64
	about   string
	rates   bool // the rate of the account changes

	mu    sync.Mutex
	fluid *oracle.Fluid
	keys  []*oracle.FluidKey
	worst *big.Rat
}

func newFluidRun(t *testing.T, rng *rand.Rand) *fluidRun {
	f := &fluidRun{t: t, rng: rng, start: time.Now(), worst: new(big.Rat), largest: 1 + rng.Int64N(5)}
	f.rates = rng.IntN(2) == 0
	burst := []int{1, 2, 5, 20}[rng.IntN(4)]
	f.account = newShaper(t, scheduler.PerSecond(10), shaper.WithBurst(burst), shaper.WithQueue(100_000), shaper.WithTolerance(0))
	f.fluid = oracle.NewFluid(oracle.Instant(int64(100*ms)), int64(burst))
	most := 1 + rng.IntN(6)
	for range 2 + rng.IntN(10) {
		f.weights = append(f.weights, 1+rng.IntN(most))
		f.keys = append(f.keys, f.fluid.NewKey(int64(f.weights[len(f.weights)-1])))
	}
	var err error
	f.group, err = shaper.NewGroup[int](scheduler.Unlimited, shaper.Under(f.account), shaper.WithTolerance(0),
		shaper.WithWeights(func(key int) int { return f.weights[key] }))
	require.NoError(t, err)
	f.about = fmt.Sprintf("burst %d, weights %v, rates change: %v", burst, f.weights, f.rates)
	return f
}

func (f *fluidRun) now() time.Duration { return time.Since(f.start) }

func at(d time.Duration) *big.Rat { return oracle.Instant(int64(d)) }

func (f *fluidRun) play() {
	for range 200 {
		if f.rng.IntN(3) > 0 {
			pass(time.Duration(1+f.rng.IntN(250)) * ms)
		}
		key := f.rng.IntN(len(f.keys))
		switch f.rng.IntN(12) {
		default:
			for range 1 + f.rng.IntN(3) {
				f.enqueue(key)
			}
		case 0:
			if f.rates && f.rng.IntN(3) == 0 {
				interval := time.Duration(20+f.rng.IntN(200)) * ms
				f.locked(func(now time.Duration) { f.fluid.SetInterval(at(now), at(interval)) })
				require.NoError(f.t, f.account.SetRate(scheduler.Per(1, interval)))
			}
		}
		synctest.Wait()
	}
	pass(time.Hour)
	require.Zero(f.t, f.account.Stats().Waiting)
	assert.LessOrEqual(f.t, f.group.Len(), len(f.weights))
}

func (f *fluidRun) locked(do func(now time.Duration)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do(f.now())
}

func (f *fluidRun) enqueue(key int) {
	k, cost := f.keys[key], 1+f.rng.Int64N(f.largest)
	var call *oracle.FluidCall
	f.locked(func(now time.Duration) { call = f.fluid.Arrive(at(now), k, cost, 0) })
	_, err := f.group.Enqueue(key, shaper.Call{Cost: int(cost)}, func(err error) {
		if err == nil {
			f.locked(func(now time.Duration) { f.left(call, now) })
		}
	})
	require.NoError(f.t, err)
}

func (f *fluidRun) left(call *oracle.FluidCall, now time.Duration) {
	if late := f.fluid.Leave(at(now), call); late.Cmp(f.worst) > 0 {
		f.worst = late
	}
}
