package discipline

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/trial"
)

const largest = 5

// script is one random run, the same for every rule.
type script struct {
	seed                                                      [2]uint64
	keys, steps                                               int
	burst, overtake, maxWeight, gap                           int64
	classes, cancels, blocks, limits, weights, charges, holds int // chances of 100
}

func newScript(rng *rand.Rand) script {
	pick := func(n ...int) int { return n[rng.IntN(len(n))] }
	return script{
		seed: [2]uint64{rng.Uint64(), rng.Uint64()},
		keys: 2 + rng.IntN(12), steps: 200,
		burst: int64(pick(1, 2, 5, 10, 20)), overtake: int64(pick(0, 20, 100)), maxWeight: int64(pick(1, 5, 30)),
		gap: int64(6 + rng.IntN(14)), classes: pick(1, 1, 2, 3), cancels: pick(0, 5, 20), blocks: pick(0, 5, 20),
		limits: pick(0, 0, 50), weights: pick(0, 5, 20), charges: 0, holds: pick(0, 0, 2),
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
		mass := chance(3) // the same happens to all keys at once
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
		if chance(s.charges) {
			l.Charge(k, cost)
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

// TestCharges shows that charges put the bound off by what the fluid has still to serve of them.
func TestCharges(t *testing.T) {
	trial.Run(t, 40, func(t *testing.T, rng *rand.Rand) {
		s := newScript(rng)
		s.charges = 20
		require.LessOrEqual(t, s.play(EEVDF{}.New), float64(largest), "%+v", s)
	})
}

// TestSimpler shows that the bound tells the rule from simpler ones. The runs are always the same.
func TestSimpler(t *testing.T) {
	for name, rule := range map[string]func(*Line) Rule{
		"FIFO": NewFIFO, "DRR": NewDRR(largest), "SFQ": NewSFQ,
		"LateStart":    EEVDF{LateStart: true}.New,
		"StepClock":    EEVDF{StepClock: true}.New,
		"DebtClock":    EEVDF{DebtClock: true}.New,
		"ResetEmpty":   EEVDF{ResetEmpty: true}.New,
		"Retag":        EEVDF{Retag: true}.New,
		"Retroactive":  EEVDF{Retroactive: true}.New,
		"NoFloor":      EEVDF{NoFloor: true}.New,
		"FreshSeat":    EEVDF{FreshSeat: true}.New,
		"KeepBlocked":  EEVDF{KeepBlocked: true}.New,
		"ChainFloor":   EEVDF{ChainFloor: true}.New,
		"AnyStart":     EEVDF{AnyStart: true}.New,
		"ForgetOnDry":  EEVDF{ForgetOnDry: true}.New,
		"MarkAll":      EEVDF{MarkAll: true}.New,
		"ChargeNobody": EEVDF{ChargeNobody: true}.New,
	} {
		t.Run(name, func(t *testing.T) {
			rng, worst, run := rand.New(rand.NewPCG(1, 2)), 0.0, 0
			for ; run < 60 && worst <= largest; run++ {
				s := newScript(rng)
				if name == "ChargeNobody" {
					s.charges = 20
				}
				worst = max(worst, s.play(rule))
			}
			t.Logf("%.2f units late after %d runs", worst, run)
			assert.Greater(t, worst, float64(largest))
		})
	}
}
