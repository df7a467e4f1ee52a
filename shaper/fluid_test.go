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
		f := newFluidRun(t, rng, someOf(rng))
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

// features are what may happen in a run, beside calls.
type features struct {
	Limits, Cancels, Weights, KeyHolds, Holds, Charges, Rates bool
}

func someOf(rng *rand.Rand) (some features) {
	for _, on := range []*bool{
		&some.Limits, &some.Cancels, &some.Weights, &some.KeyHolds, &some.Holds, &some.Charges, &some.Rates,
	} {
		*on = rng.IntN(2) == 0
	}
	return some
}

// A fluidRun lets the same happen to an account with weighted keys and to the fluid.
type fluidRun struct {
	t       *testing.T
	rng     *rand.Rand
	start   time.Time
	account *shaper.Shaper
	group   *shaper.Group[int]
	largest int64
	about   string
	features

	mu      sync.Mutex
	fluid   *oracle.Fluid
	weights []int
	keys    []*fluidKey
	worst   *big.Rat
}

func newFluidRun(t *testing.T, rng *rand.Rand, some features) *fluidRun {
	f := &fluidRun{t: t, rng: rng, start: time.Now(), worst: new(big.Rat), largest: 1 + rng.Int64N(5), features: some}
	burst := []int{1, 2, 5, 20}[rng.IntN(4)]
	f.account = newShaper(t, scheduler.PerSecond(10), shaper.WithBurst(burst), shaper.WithQueue(100_000), shaper.WithTolerance(0))
	f.fluid = oracle.NewFluid(oracle.Instant(int64(100*ms)), int64(burst))
	rate, burstOfKey := scheduler.Unlimited, 1
	interval := time.Duration(100+rng.IntN(1500)) * ms
	if f.Limits {
		rate, burstOfKey = scheduler.Per(1, interval), 1+rng.IntN(6)
	} else {
		interval = 0
	}
	most := 1 + rng.IntN(6)
	for range 2 + rng.IntN(10) {
		f.weights = append(f.weights, 1+rng.IntN(most))
		f.keys = append(f.keys, &fluidKey{
			FluidKey: f.fluid.NewKey(int64(f.weights[len(f.weights)-1])),
			limit:    oracle.GCRA{T: at(interval), Burst: int64(burstOfKey)},
		})
	}
	opts := []shaper.Option{shaper.Under(f.account), shaper.WithTolerance(0), shaper.WithWeights(f.weigh)}
	if f.Limits {
		opts = append(opts, shaper.WithBurst(burstOfKey))
	}
	var err error
	f.group, err = shaper.NewGroup[int](rate, opts...)
	require.NoError(t, err)
	f.about = fmt.Sprintf("burst %d, weights %v, a unit of a key each %v, burst %d, %+v", burst, f.weights, interval, burstOfKey, some)
	return f
}

func (f *fluidRun) weigh(key int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.weights[key]
}

func (f *fluidRun) now() time.Duration { return time.Since(f.start) }

func at(d time.Duration) *big.Rat { return oracle.Instant(int64(d)) }

func (f *fluidRun) play() {
	for range 200 {
		if f.rng.IntN(3) > 0 {
			pass(time.Duration(1+f.rng.IntN(250)) * ms)
		}
		key := f.rng.IntN(len(f.keys))
		switch f.rng.IntN(14) {
		default:
			for range 1 + f.rng.IntN(3) {
				f.enqueue(key)
			}
		case 0:
			if f.Rates && f.rng.IntN(3) == 0 {
				f.setRate(time.Duration(20+f.rng.IntN(200)) * ms)
			}
		case 1:
			if f.Cancels {
				f.cancel(key)
			}
		case 2:
			if f.Weights {
				f.reweigh(key, 1+f.rng.IntN(6))
			}
		case 3:
			if f.KeyHolds {
				f.holdKey(key, time.Duration(1+f.rng.IntN(3000))*ms)
			}
		case 4:
			if f.Holds && f.rng.IntN(3) == 0 {
				f.hold(time.Duration(1+f.rng.IntN(3000)) * ms)
			}
		case 5:
			if f.Charges {
				f.charge(key, 1+f.rng.Int64N(f.largest))
			}
		}
		synctest.Wait()
	}
	pass(time.Hour)
	require.Zero(f.t, f.account.Stats().Waiting)
	assert.LessOrEqual(f.t, f.group.Len(), len(f.weights))
}
