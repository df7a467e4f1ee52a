package discipline

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/trial"
)

const largest = 5

// script is one random run, the same for every rule.
type script struct {
	seed                                                   [2]uint64
	keys, steps                                            int
	burst, overtake, maxWeight, gap                        int64
	classes, cancels, blocks, limits, weights, holds, mass int // chances of 100
}

func newScript(rng *rand.Rand) script {
	pick := func(n ...int) int { return n[rng.IntN(len(n))] }
	return script{
		seed: [2]uint64{rng.Uint64(), rng.Uint64()},
		keys: 2 + rng.IntN(12), steps: 200,
		burst: int64(pick(1, 2, 5, 10, 20)), overtake: int64(pick(0, 20, 100)), maxWeight: int64(pick(1, 5, 30)),
		gap: int64(6 + rng.IntN(14)), classes: pick(1, 1, 2, 3), cancels: pick(0, 5, 20), blocks: pick(0, 5, 20),
		limits: pick(0, 0, 50), weights: pick(0, 5, 20), mass: 3, holds: pick(0, 0, 2),
	}
}

// play runs the script under a rule, and returns by how many units a call was late.
func (s script) play(rule func(*Line) Rule) float64 {
	rng := rand.New(rand.NewPCG(s.seed[0], s.seed[1]))
	weights := make([]int64, s.keys)
	for i := range weights {
		weights[i] = 1 + rng.Int64N(s.maxWeight)
	}
	l := NewLine(weights, s.burst, s.overtake, rule)
	chance := func(percent int) bool { return rng.IntN(100) < percent }
	unblockAt := map[*Key]int64{}
	limited := make([]bool, s.keys)
	for i := range limited {
		limited[i] = chance(s.limits)
	}
	l.departed = func(k *Key) {
		if limited[k.ID] {
			// Not drawn from rng: rules let calls leave in different orders.
			unblockAt[k] = l.now + 1 + int64(k.ID*7%23)
			l.Block(k)
		}
	}
	t := int64(0)
	for range s.steps {
		step := rng.Int64N(2 * s.gap)
		for range step {
			t++
			l.Advance(t)
			for _, k := range l.Keys {
				if at, ok := unblockAt[k]; ok && at <= t {
					delete(unblockAt, k)
					l.Unblock(k)
				}
			}
		}
		k := l.Keys[rng.IntN(len(l.Keys))]
		mass := chance(s.mass) // the same happens to all keys at once
		cost, class, weight, at := 1+rng.Int64N(largest), rng.IntN(s.classes), 1+rng.Int64N(s.maxWeight), rng.Uint32()
		each := func(f func(k *Key)) {
			if !mass {
				f(k)
				return
			}
			for _, k := range l.Keys {
				f(k)
			}
		}
		for range rng.IntN(3) {
			each(func(k *Key) { l.Join(k, cost, class) })
			k, cost = l.Keys[rng.IntN(len(l.Keys))], 1+rng.Int64N(largest)
			mass = mass && chance(50)
		}
		if chance(s.cancels) {
			each(func(k *Key) {
				if n := len(k.Calls); n > 0 {
					l.Cancel(k.Calls[int(at)%min(2, n)])
				}
			})
		}
		if chance(s.weights) {
			each(func(k *Key) { l.Reweigh(k, weight) })
		}
		if chance(s.blocks) {
			unblockAt[k] = t + 1 + int64(at%60)
			l.Block(k)
		}
		if chance(s.holds) {
			l.Hold(t + int64(at%80))
		}
	}
	l.Advance(t + 4000)
	late, _ := l.Worst.Float64()
	return late
}

// TestEEVDF holds the rule to the promise that the line makes with weights.
func TestEEVDF(t *testing.T) {
	worst := 0.0
	trial.Run(t, 120, func(t *testing.T, rng *rand.Rand) {
		s := newScript(rng)
		late := s.play(EEVDF{}.New)
		worst = max(worst, late)
		require.LessOrEqual(t, late, float64(largest), "%+v", s)
	})
	t.Logf("at worst %.2f units late", worst)
}

// TestCharge shows that a charge counts for the key that made it.
func TestCharge(t *testing.T) {
	l := NewLine([]int64{1, 1}, 1, 0, EEVDF{}.New)
	a, b := l.Keys[0], l.Keys[1]
	l.Charge(a, 10)
	for range 30 {
		l.Join(a, 1, 0)
		l.Join(b, 1, 0)
	}
	l.Advance(29 * tick) // 10 units pay the charge, and 20 leave
	left := func(k *Key) int { return 30 - len(k.Calls) }
	// One of the 10 the fluid served from its bucket before b came.
	assert.InDelta(t, left(a)+9, left(b), 1)
}

// TestFloor shows why a successor's F is not less than that of the head that went: the
// heads of twenty keys go at once, and all their successors would be before a key that
// had no part in it.
func TestFloor(t *testing.T) {
	play := func(rule EEVDF) float64 {
		weights := slices.Repeat([]int64{1}, 21)
		l := NewLine(weights, largest, 0, rule.New)
		other := l.Keys[20]
		for _, k := range l.Keys[:20] {
			l.Join(k, largest, 0)
			l.Join(k, 1, 0)
		}
		l.Advance(23 * tick)
		for at := int64(24 * tick); l.tat-l.now < largest*tick; at++ {
			l.Advance(at) // until a call has just left, and the account has nothing unused
		}
		l.Join(other, 1, 0)
		for _, k := range l.Keys[:20] {
			if c := k.Head(); c != nil && c.Cost == largest {
				l.Cancel(c)
			}
		}
		l.Advance(200 * tick)
		late, _ := l.Worst.Float64()
		return late
	}
	assert.LessOrEqual(t, play(EEVDF{}), float64(largest))
	assert.Greater(t, play(EEVDF{NoFloor: true}), float64(largest))
}

// TestSimpler shows that the bound tells the rule from simpler ones. The runs are always the same.
func TestSimpler(t *testing.T) {
	for _, simpler := range []struct {
		name string
		rule func(*Line) Rule
		from uint64 // the first run that is known to break the bound, so that the test is fast
	}{
		{"FIFO", NewFIFO, 0},
		{"DRR", NewDRR(largest), 0},
		{"SFQ", NewSFQ, 0},
		{"LateStart", EEVDF{LateStart: true}.New, 6},
		{"MarkAll", EEVDF{MarkAll: true}.New, 517},
		{"StepClock", EEVDF{StepClock: true}.New, 0},
		{"DebtClock", EEVDF{DebtClock: true}.New, 0},
		{"ResetEmpty", EEVDF{ResetEmpty: true}.New, 49},
		{"Retag", EEVDF{Retag: true}.New, 4},
		{"Retroactive", EEVDF{Retroactive: true}.New, 158},
		{"FreshSeat", EEVDF{FreshSeat: true}.New, 4},
		{"KeepBlocked", EEVDF{KeepBlocked: true}.New, 0},
		{"ChainFloor", EEVDF{ChainFloor: true}.New, 0},
		{"AnyStart", EEVDF{AnyStart: true}.New, 117},
		{"ForgetOnDry", EEVDF{ForgetOnDry: true}.New, 1},
	} {
		t.Run(simpler.name, func(t *testing.T) {
			s := newScript(rand.New(rand.NewPCG(simpler.from, 0)))
			s.mass, s.gap, s.steps = 5, 9, 400 // the same happens to many keys at once
			late := s.play(simpler.rule)
			t.Logf("%.2f units late", late)
			assert.Greater(t, late, float64(largest))
			assert.LessOrEqual(t, s.play(EEVDF{}.New), float64(largest), "the rule itself")
		})
	}
}
