package discipline

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/trial"
)

// TestEEVDF holds the rule to the promise that the line makes with weights.
func TestEEVDF(t *testing.T) {
	worst := 0.0
	trial.Run(t, 30, func(t *testing.T, rng *rand.Rand) {
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

// TestSimpler shows that the bound tells the rule from simpler ones. The runs are always the same.
func TestSimpler(t *testing.T) {
	for name, rule := range map[string]func(*Line) Rule{
		"FIFO": NewFIFO, "DRR": NewDRR(Largest), "SFQ": NewSFQ,
		"LateStart":   EEVDF{LateStart: true}.New,
		"StepClock":   EEVDF{StepClock: true}.New,
		"DebtClock":   EEVDF{DebtClock: true}.New,
		"Retag":       EEVDF{Retag: true}.New,
		"FreshSeat":   EEVDF{FreshSeat: true}.New,
		"KeepBlocked": EEVDF{KeepBlocked: true}.New,
		"ChainFloor":  EEVDF{ChainFloor: true}.New,
		"ForgetOnDry": EEVDF{ForgetOnDry: true}.New,
	} {
		t.Run(name, func(t *testing.T) {
			worst, run := 0.0, uint64(0)
			for ; run < 40 && worst <= Largest; run++ {
				s := NewScript(rand.New(rand.NewPCG(run, 0)))
				s.Mass, s.gap, s.steps = 5, 9, 400 // the same happens to many keys at once
				worst = max(worst, s.Play(rule))
			}
			t.Logf("%.2f units late after %d runs", worst, run)
			assert.Greater(t, worst, float64(Largest))
		})
	}
}
