package discipline

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/trial"
)

// TestEEVDF holds the rule to the promise that the line makes with weights.
func TestEEVDF(t *testing.T) {
	worst := 0.0
	trial.Run(t, 40, func(t *testing.T, rng *rand.Rand) {
		s := NewScript(rng)
		late := s.Play(EEVDF{}.New)
		worst = max(worst, late)
		require.LessOrEqual(t, late, float64(Largest), "%+v", s)
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
		l := NewLine(weights, Largest, 0, rule.New)
		other := l.Keys[20]
		for _, k := range l.Keys[:20] {
			l.Join(k, Largest, 0)
			l.Join(k, 1, 0)
		}
		l.Advance(23 * tick)
		for at := int64(24 * tick); l.tat-l.now < Largest*tick; at++ {
			l.Advance(at) // until a call has just left, and the account has nothing unused
		}
		l.Join(other, 1, 0)
		for _, k := range l.Keys[:20] {
			if c := k.Head(); c != nil && c.Cost == Largest {
				l.Cancel(c)
			}
		}
		l.Advance(200 * tick)
		late, _ := l.Worst.Float64()
		return late
	}
	assert.LessOrEqual(t, play(EEVDF{}), float64(Largest))
	assert.Greater(t, play(EEVDF{NoFloor: true}), float64(Largest))
}

// TestCredit shows why what the account gets back does not go to a key of which the fluid has
// begun with the head: many that are half served would be overdue at once.
func TestCredit(t *testing.T) {
	s := NewScript(rand.New(rand.NewPCG(123, 0)))
	s.Mass, s.gap, s.steps, s.Charges, s.Refunds = 20, 9, 200, 0, 60
	assert.LessOrEqual(t, s.Play(EEVDF{}.New), float64(Largest))
	assert.Greater(t, s.Play(EEVDF{Credit: true}.New), float64(Largest))
}

// TestKeepLost shows why the fluid is behind by what the account cannot catch up: it had been
// served to other keys while the account stood for a cost that nothing had.
func TestKeepLost(t *testing.T) {
	s := NewScript(rand.New(rand.NewPCG(105, 0)))
	s.Mass, s.gap, s.steps, s.Charges, s.Refunds = 20, 9, 400, 0, 60
	assert.LessOrEqual(t, s.Play(EEVDF{}.New), float64(Largest))
	assert.Greater(t, s.Play(EEVDF{KeepLost: true}.New), float64(Largest))
}

// TestSlowSeat shows why a successor that the fluid has ended with is due at once: with the
// weight of the seat, which was a small one, it would wait for as long as all of it takes.
func TestSlowSeat(t *testing.T) {
	s := NewScript(rand.New(rand.NewPCG(1, 8650)))
	s.Charges, s.Refunds = 0, 0
	assert.LessOrEqual(t, s.Play(EEVDF{}.New), float64(Largest))
	assert.Greater(t, s.Play(EEVDF{SlowSeat: true}.New), float64(Largest))
}

// TestSimpler shows that the bound tells the rule from simpler ones. The runs are always the same.
func TestSimpler(t *testing.T) {
	for _, simpler := range []struct {
		name string
		rule func(*Line) Rule
		from uint64 // the first run that is known to break the bound, so that the test is fast
	}{
		{"FIFO", NewFIFO, 0},
		{"DRR", NewDRR(Largest), 0},
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
		{"ForgetOnDry", EEVDF{ForgetOnDry: true}.New, 1},
	} {
		t.Run(simpler.name, func(t *testing.T) {
			s := NewScript(rand.New(rand.NewPCG(simpler.from, 0)))
			s.Mass, s.gap, s.steps, s.Charges, s.Refunds = 5, 9, 400, 0, 0 // the same happens to many keys at once
			late := s.Play(simpler.rule)
			t.Logf("%.2f units late", late)
			assert.Greater(t, late, float64(Largest))
			assert.LessOrEqual(t, s.Play(EEVDF{}.New), float64(Largest), "the rule itself")
		})
	}
}
