package discipline

import (
	"math/rand/v2"
	"slices"
)

// Largest is the Largest cost of a script.
const Largest = 5

// A Script is one random run, the same for every rule.
type Script struct {
	seed                                                                     [2]uint64
	keys, steps                                                              int
	burst, overtake, maxWeight, gap                                          int64
	Classes, Cancels, Blocks, Limits, Weights, Holds, Mass, Charges, Refunds int // chances of 100; of classes how many there are
}

// NewScript returns a random one.
func NewScript(rng *rand.Rand) Script {
	pick := func(n ...int) int { return n[rng.IntN(len(n))] }
	return Script{
		seed: [2]uint64{rng.Uint64(), rng.Uint64()},
		keys: 2 + rng.IntN(12), steps: 200,
		burst: int64(pick(1, 2, 5, 10, 20)), overtake: int64(pick(0, 20, 100)), maxWeight: int64(pick(1, 5, 30)),
		gap: int64(6 + rng.IntN(14)), Classes: pick(1, 1, 2, 3), Cancels: pick(0, 5, 20), Blocks: pick(0, 5, 20),
		Limits: pick(0, 0, 50), Weights: pick(0, 5, 20), Mass: 3, Holds: pick(0, 0, 2),
		Charges: pick(0, 0, 5), Refunds: pick(0, 10, 40),
	}
}

// Play runs the script under a rule, and returns by how many units a call was late.
func (s Script) Play(rule func(*Line) Rule) float64 {
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
		limited[i] = chance(s.Limits)
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
		mass := chance(s.Mass) // the same happens to all keys at once
		cost, class, weight, at := 1+rng.Int64N(Largest), rng.IntN(s.Classes), 1+rng.Int64N(s.maxWeight), rng.Uint32()
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
			k, cost = l.Keys[rng.IntN(len(l.Keys))], 1+rng.Int64N(Largest)
			mass = mass && chance(50)
		}
		if chance(s.Cancels) {
			each(func(k *Key) {
				if n := len(k.Calls); n > 0 {
					l.Cancel(k.Calls[int(at%uint32(min(2, n)))])
				}
			})
		}
		if chance(s.Weights) {
			each(func(k *Key) { l.Reweigh(k, weight) })
		}
		if chance(s.Blocks) {
			unblockAt[k] = t + 1 + int64(at%60)
			l.Block(k)
		}
		if chance(s.Holds) {
			l.Hold(t + int64(at%80))
		}
		if s.Refunds > 0 && chance(s.Refunds) {
			// All of the latest ones, or one.
			n := min(len(l.Open), 1+int(at%20))
			if !mass {
				n = min(n, 1)
			}
			for range n {
				i := len(l.Open) - 1 - int(at%3)%len(l.Open)
				d := l.Open[i]
				l.Open = slices.Delete(l.Open, i, i+1)
				l.Settle(d, int64(at/7)%d.Cost)
			}
		}
		if s.Charges > 0 && chance(s.Charges) {
			each(func(k *Key) { l.Charge(k, 1+int64(at%Largest)) })
		}
	}
	l.Advance(t + 4000)
	late, _ := l.Worst.Float64()
	return late
}
