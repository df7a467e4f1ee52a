package fair_test

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/oracle/discipline"
	"github.com/sluice-go/sluice/internal/trial"
	"github.com/sluice-go/sluice/shaper/internal/fair"
)

// TestReference tells a Sharing and the rule of package discipline, which is in exact rationals,
// the same events, and compares V and the tags of all heads after each. One of them says who is
// next.
func TestReference(t *testing.T) {
	trial.Run(t, 60, func(t *testing.T, rng *rand.Rand) {
		s, leads := discipline.NewScript(rng), rng.IntN(2) == 0
		s.Play(func(l *discipline.Line) discipline.Rule {
			return &both{t, l, newRule(l).(*rule), discipline.EEVDF{}.New(l).(*discipline.EEVDF), leads}
		})
	})
}

type both struct {
	t     *testing.T
	line  *discipline.Line
	rule  *rule
	ref   *discipline.EEVDF
	leads bool
}

func (b *both) compare(after string) {
	// What is rounded: a part for each departure of a key, and one for each change of the sum.
	near := func(what string, parts int64, want *big.Rat) {
		got, _ := big.NewRat(parts, fair.Parts).Float64()
		exact, _ := want.Float64()
		require.InDelta(b.t, exact, got, 1e-5, "%s after %s", what, after)
	}
	near("V", b.rule.V(), b.ref.V())
	for i, k := range b.line.Keys {
		start, finish, ok := b.rule.flows[i].tags.Tags()
		s, f, seated := b.ref.Tags(k)
		require.Equal(b.t, seated, ok, after)
		if ok {
			near("S", start, s)
			near("F", finish, f)
		}
	}
}

func (b *both) each(event string, tell func(discipline.Rule)) {
	tell(b.rule)
	tell(b.ref)
	b.compare(event)
}

func (b *both) Elapsed(units *big.Rat) {
	b.each("Elapsed", func(r discipline.Rule) { r.Elapsed(units) })
}

func (b *both) Stood(units *big.Rat) {
	b.each("Stood", func(r discipline.Rule) { r.Stood(units) })
}

func (b *both) Reopened(cost int64) {
	b.each("Reopened", func(r discipline.Rule) { r.Reopened(cost) })
}

func (b *both) Joined(c *discipline.Call) {
	b.each("Joined", func(r discipline.Rule) { r.Joined(c) })
}

func (b *both) Gone(c *discipline.Call, wasHead bool) {
	b.each("Gone", func(r discipline.Rule) { r.Gone(c, wasHead) })
}

func (b *both) Left(c *discipline.Call) { b.each("Left", func(r discipline.Rule) { r.Left(c) }) }

func (b *both) Charged(k *discipline.Key, units int64) {
	b.each("Charged", func(r discipline.Rule) { r.Charged(k, units) })
}

func (b *both) Refunded(k *discipline.Key, units *big.Rat) {
	b.each("Refunded", func(r discipline.Rule) { r.Refunded(k, units) })
}

func (b *both) Blocked(k *discipline.Key) {
	b.each("Blocked", func(r discipline.Rule) { r.Blocked(k) })
}

func (b *both) Unblocked(k *discipline.Key) {
	b.each("Unblocked", func(r discipline.Rule) { r.Unblocked(k) })
}

func (b *both) Reweighed(k *discipline.Key) {
	b.each("Reweighed", func(r discipline.Rule) { r.Reweighed(k) })
}

func (b *both) Next() *discipline.Key {
	if b.leads {
		return b.rule.Next()
	}
	return b.ref.Next()
}
