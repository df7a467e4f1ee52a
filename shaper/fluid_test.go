package shaper_test

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"strings"
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
	trial.Bubble(t, 1000, func(t *testing.T, rng *rand.Rand) {
		f := newFluidRun(t, rng)
		f.play()
		if f.worst.Cmp(worst) > 0 {
			worst = f.worst
		}
		bound := oracle.Instant(f.largest)
		bound.Add(bound, big.NewRat(1, 1000))
		if os.Getenv("FEAT") != "" {
			return
		}
		assert.LessOrEqual(t, f.worst.Cmp(bound), 0, "%s units late of %d: %s", f.worst.FloatString(3), f.largest, f.about)
	})
	fmt.Printf("FEAT=%s worst %s\n", os.Getenv("FEAT"), worst.FloatString(3))
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
	log     []string
	done    bool
	does    map[string]bool

	mu    sync.Mutex
	fluid *oracle.Fluid
	keys  []*fluidKey
	worst *big.Rat
}

type fluidKey struct {
	*oracle.FluidKey
	interval time.Duration // of the key's own limit; 0: none
	tat      time.Duration // of that limit, burst 1
	held     time.Duration // until when
	blocked  bool
}

func newFluidRun(t *testing.T, rng *rand.Rand) *fluidRun {
	f := &fluidRun{t: t, rng: rng, start: time.Now(), worst: new(big.Rat), largest: 1 + rng.Int64N(5), does: map[string]bool{}}
	for _, what := range []string{"limits", "cancels", "weights", "holds", "charges", "account holds", "rates"} {
		f.does[what] = rng.IntN(2) == 0
		if e := os.Getenv("FEAT"); e != "" {
			f.does[what] = strings.Contains(e, what+",")
		}
	}
	burst := []int{1, 2, 5, 20}[rng.IntN(4)]
	if e := os.Getenv("BURST"); e != "" {
		fmt.Sscan(e, &burst)
	}
	f.account = newShaper(t, scheduler.PerSecond(10), shaper.WithBurst(burst), shaper.WithQueue(100_000), shaper.WithTolerance(0))
	f.fluid = oracle.NewFluid(oracle.Instant(int64(100*ms)), int64(burst))
	most := 1 + rng.IntN(6)
	for range 2 + rng.IntN(10) {
		f.weights = append(f.weights, 1+rng.IntN(most))
		k := &fluidKey{FluidKey: f.fluid.NewKey(int64(f.weights[len(f.weights)-1]))}
		if f.does["limits"] && rng.IntN(2) == 0 {
			k.interval = time.Duration(50+rng.IntN(600)) * ms
		}
		f.keys = append(f.keys, k)
	}
	var err error
	f.group, err = shaper.NewGroup[int](scheduler.Unlimited, shaper.Under(f.account), shaper.WithTolerance(0),
		shaper.WithWeights(func(key int) int { return f.weights[key] }),
		shaper.WithRates(func(key int) scheduler.Rate {
			if d := f.keys[key].interval; d > 0 {
				return scheduler.Per(1, d)
			}
			return scheduler.Unlimited
		}))
	require.NoError(t, err)
	f.about = fmt.Sprintf("burst %d, weights %v, %v", burst, f.weights, f.does)
	return f
}

func (f *fluidRun) now() time.Duration { return time.Since(f.start) }

func at(d time.Duration) *big.Rat { return oracle.Instant(int64(d)) }

// freed is when the limits of a key allow its head.
func (k *fluidKey) freed() time.Duration { return max(k.tat, k.held) }

// untilLocked has the fluid know which keys are free, up to t.
func (f *fluidRun) untilLocked(t time.Duration) {
	for {
		var next *fluidKey
		for _, k := range f.keys {
			if k.blocked && k.freed() <= t && (next == nil || k.freed() < next.freed()) {
				next = k
			}
		}
		if next == nil {
			return
		}
		next.blocked = false
		f.fluid.Unblock(at(next.freed()), next.FluidKey)
	}
}

func (f *fluidRun) blockLocked(k *fluidKey, now time.Duration) {
	if k.freed() > now && !k.blocked {
		k.blocked = true
		f.fluid.Block(at(now), k.FluidKey)
	}
}

func (f *fluidRun) play() {
	var cancels []func()
	for range 200 {
		if f.rng.IntN(3) > 0 {
			pass(time.Duration(1+f.rng.IntN(250)) * ms)
		}
		key := f.rng.IntN(len(f.keys))
		switch f.rng.IntN(12) {
		default:
			for range 1 + f.rng.IntN(3) {
				cancels = append(cancels, f.enqueue(key))
			}
		case 0:
			if n := len(cancels); f.does["cancels"] && n > 0 {
				cancels[max(0, n-1-f.rng.IntN(20))]()
			}
		case 1:
			if f.does["weights"] {
				f.reweigh(key, 1+f.rng.IntN(6))
			}
		case 2:
			if f.does["holds"] {
				f.hold(key)
			}
		case 3:
			if f.does["charges"] {
				f.charge(key)
			}
		case 4:
			if f.does["account holds"] && f.rng.IntN(4) == 0 {
				until := f.now() + time.Duration(1+f.rng.IntN(2000))*ms
				f.locked(func(now time.Duration) { f.fluid.Hold(at(now), at(until)) })
				f.account.HoldUntil(f.start.Add(until))
			}
		case 5:
			if f.does["rates"] && f.rng.IntN(3) == 0 {
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
	now := f.now()
	f.untilLocked(now)
	do(now)
}

// enqueue returns what cancels the call.
func (f *fluidRun) enqueue(key int) (cancel func()) {
	k, cost := f.keys[key], 1+f.rng.Int64N(f.largest)
	var call *oracle.FluidCall
	f.locked(func(now time.Duration) { call = f.fluid.Arrive(at(now), k.FluidKey, cost, 0) })
	if os.Getenv("TRACE") != "" {
		f.log = append(f.log, fmt.Sprintf("%v arrive key %d cost %d", f.now(), key, cost))
	}
	stop, err := f.group.Enqueue(key, shaper.Call{Cost: int(cost)}, func(err error) {
		if err == nil {
			f.locked(func(now time.Duration) { f.left(k, call, now) })
		}
	})
	require.NoError(f.t, err)
	return func() {
		if stop() {
			f.locked(func(now time.Duration) { f.fluid.Cancel(at(now), call) })
		}
	}
}

func (f *fluidRun) left(k *fluidKey, call *oracle.FluidCall, now time.Duration) {
	if k.blocked || k.freed() > now {
		assert.Fail(f.t, "a call left that its key forbids")
	}
	late := f.fluid.Leave(at(now), call)
	if late.Cmp(f.worst) > 0 {
		f.worst = late
	}
	if os.Getenv("TRACE") != "" {
		f.log = append(f.log, fmt.Sprintf("%v left key %d cost %d late %s", now, f.keyOf(k), call.Cost, late.FloatString(2)))
		if late.Cmp(oracle.Instant(f.largest+1)) > 0 && !f.done {
			f.done = true
			fmt.Println("LEN", len(f.log), f.about, f.largest)
			if len(f.log) < 40 {
				for _, l := range f.log {
					fmt.Println(l)
				}
			}
		}
	}
	k.tat = max(k.tat, now) + time.Duration(call.Cost)*k.interval
	f.blockLocked(k, now)
}

func (f *fluidRun) reweigh(key, weight int) {
	f.locked(func(now time.Duration) { f.fluid.SetWeight(at(now), f.keys[key].FluidKey, int64(weight)) })
	require.NoError(f.t, f.group.SetWeight(key, weight))
}

func (f *fluidRun) hold(key int) {
	k := f.keys[key]
	until := f.now() + time.Duration(1+f.rng.IntN(2000))*ms
	f.locked(func(now time.Duration) {
		k.held = max(k.held, until)
		f.blockLocked(k, now)
	})
	if err := f.group.HoldUntil(key, f.start.Add(until)); err != nil {
		require.NoError(f.t, errors.Unwrap(err))
	}
}

func (f *fluidRun) charge(key int) {
	k, cost := f.keys[key], 1+f.rng.IntN(int(f.largest))
	f.locked(func(now time.Duration) {
		f.fluid.Charge(at(now), k.FluidKey, int64(cost))
		k.tat = max(k.tat, now) + time.Duration(cost)*k.interval
		f.blockLocked(k, now)
	})
	require.NoError(f.t, f.group.Charge(key, cost))
}

func (f *fluidRun) keyOf(k *fluidKey) int {
	for i, x := range f.keys {
		if x == k {
			return i
		}
	}
	return -1
}
