// Package oracle holds models in exact rationals that the tests compare the
// project's schedules and lines with. They are written from the definitions, for
// clarity alone: they share no code with what they judge.
package oracle

import (
	"math/big"
	"time"
)

// GCRA is the virtual scheduling algorithm on the rational time line. Instants
// are nanoseconds since an arbitrary origin.
type GCRA struct {
	T         *big.Rat // emission interval in ns
	Burst     int64
	Tolerance time.Duration
	TAT       *big.Rat // nil: nothing has left yet
}

// Interval returns period/units in nanoseconds.
func Interval(units int64, period time.Duration) *big.Rat {
	return big.NewRat(int64(period), units)
}

// Due returns the instant at which n units may leave if they ask at t.
func (g *GCRA) Due(t *big.Rat, n int64) *big.Rat {
	if g.TAT == nil {
		return t
	}
	lead := g.Burst - min(n, g.Burst)
	due := new(big.Rat).Sub(g.TAT, g.units(lead))
	if due.Cmp(t) < 0 {
		return t
	}
	return due
}

// Blurs reports whether TAT lies within the nanosecond that ends at t, and not at
// its end. In whole nanoseconds it cannot be told whether TAT has come
// then, so an event at t has no one right outcome.
func (g *GCRA) Blurs(t *big.Rat) bool {
	return g.TAT != nil && !g.TAT.IsInt() && new(big.Rat).SetInt(Ceil(g.TAT)).Cmp(t) == 0
}

// Leave charges n units that were due at due and left at left.
func (g *GCRA) Leave(due, left *big.Rat, n int64) {
	d := new(big.Rat).Sub(left, new(big.Rat).SetInt64(int64(g.Tolerance)))
	if d.Cmp(due) < 0 {
		d = due
	}
	if g.TAT == nil || g.TAT.Cmp(d) < 0 {
		g.TAT = d
	}
	g.TAT = new(big.Rat).Add(g.TAT, g.units(n))
}

// SetInterval changes T at now and keeps the units that are owed.
func (g *GCRA) SetInterval(now, t *big.Rat) {
	if g.TAT != nil && g.TAT.Cmp(now) > 0 && g.T.Sign() > 0 {
		owed := new(big.Rat).Sub(g.TAT, now)
		owed.Quo(owed, g.T)
		g.TAT = owed.Mul(owed, t).Add(owed, now)
	}
	g.T = t
}

func (g *GCRA) units(n int64) *big.Rat {
	return new(big.Rat).Mul(g.T, new(big.Rat).SetInt64(n))
}

// Ceil rounds a rational number of nanoseconds up to a whole one.
func Ceil(x *big.Rat) *big.Int {
	q, r := new(big.Int).QuoRem(x.Num(), x.Denom(), new(big.Int))
	if r.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q
}

// Instant returns a whole number of nanoseconds as a rational.
func Instant(ns int64) *big.Rat { return new(big.Rat).SetInt64(ns) }
