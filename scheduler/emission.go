package scheduler

import (
	"math/big"
	"math/bits"
	"time"
)

// A span is a length of time that need not be a whole number of nanoseconds:
// ns of them and frac/den of one more, with 0 <= frac < den. The emission that
// made it knows den. A span that would be longer than a Duration stays at forever.
type span struct {
	ns   uint64
	frac uint64
}

var forever = span{ns: uint64(never)}

// ceil rounds up to whole nanoseconds: waiting longer than the exact span is
// allowed, waiting shorter is not.
func (s span) ceil() time.Duration {
	if s.frac > 0 && s.ns < uint64(never) {
		s.ns++
	}
	return time.Duration(s.ns)
}

// An emission is a rate made ready for exact arithmetic: the emission interval T is
// period/units nanoseconds in lowest terms, and fractions of a nanosecond are
// counted in 1/den, where den is a multiple of units. So sums and multiples of T
// are exact for every rate, in integers, whatever their number.
type emission struct {
	units, period uint64
	den           uint64
}

// maxDen leaves room for the sum of two fractions in a uint64.
const maxDen = 1 << 63

func newEmission(r Rate) emission {
	if r.unlimited {
		return emission{units: 1, period: 0, den: 1}
	}
	u, e := uint64(r.units), uint64(r.period)
	g := gcd(u, e)
	return emission{units: u / g, period: e / g, den: u / g}
}

// times returns n·T. A negative n counts as 0.
func (e emission) times(n int64) span {
	if n <= 0 {
		return span{}
	}
	hi, lo := bits.Mul64(uint64(n), e.period)
	if hi >= e.units { // the quotient needs more than 64 bits
		return forever
	}
	ns, rest := bits.Div64(hi, lo, e.units)
	if ns >= uint64(never) {
		return forever
	}
	return span{ns: ns, frac: rest * (e.den / e.units)}
}

// plus returns a+b.
func (e emission) plus(a, b span) span {
	sum := span{ns: a.ns + b.ns, frac: a.frac + b.frac}
	if sum.frac >= e.den {
		sum.frac -= e.den
		sum.ns++
	}
	if sum.ns >= uint64(never) {
		return forever
	}
	return sum
}

// minus returns a-b, or nothing where b is the longer one.
func (e emission) minus(a, b span) span {
	if a.ns < b.ns || a.ns == b.ns && a.frac <= b.frac {
		return span{}
	}
	if a == forever {
		return forever
	}
	diff := span{ns: a.ns - b.ns, frac: a.frac - b.frac}
	if a.frac < b.frac {
		diff.frac += e.den
		diff.ns--
	}
	return diff
}

// convert returns, for time owed at e, the time that the same units are worth at q,
// and q with a den in which that time is exact; see fit.
func (e emission) convert(owed span, q emission) (span, emission) {
	if e.period == 0 || q.period == 0 {
		return span{}, q // without an interval no time is worth a unit
	}
	worth := e.rational(owed)
	worth.Mul(worth, new(big.Rat).SetFrac(bigUint(q.period), bigUint(q.units)))
	worth.Mul(worth, new(big.Rat).SetFrac(bigUint(e.units), bigUint(e.period)))
	return q.fit(worth)
}

// rebase returns s, which is counted in the den of e, in one that suits q; see fit.
func (e emission) rebase(s span, q emission) (span, emission) {
	if s.frac == 0 {
		return s, q
	}
	return q.fit(e.rational(s))
}

// rational returns the exact length of s in nanoseconds.
func (e emission) rational(s span) *big.Rat {
	frac := new(big.Rat).SetFrac(bigUint(s.frac), bigUint(e.den))
	return frac.Add(frac, new(big.Rat).SetInt(bigUint(s.ns)))
}

// fit returns a length of time as a span, and the emission with a den in which the span
// is exact. Where no den of 63 bits can hold it, it is rounded up by less than 1/den.
func (e emission) fit(length *big.Rat) (span, emission) {
	ns, rest := new(big.Int).QuoRem(length.Num(), length.Denom(), new(big.Int))
	if !ns.IsUint64() || ns.Uint64() >= uint64(never) {
		return forever, e
	}
	out := span{ns: ns.Uint64()}
	if rest.Sign() == 0 {
		return out, e
	}
	e.den = denFor(e.units, length.Denom())
	quo, rem := rest.Mul(rest, bigUint(e.den)).QuoRem(rest, length.Denom(), new(big.Int))
	out.frac = quo.Uint64()
	if rem.Sign() > 0 {
		out.frac++
	}
	if out.frac == e.den {
		return span{ns: out.ns + 1}, e
	}
	return out, e
}

// denFor returns the least common multiple of units and want if it fits, and
// else the largest multiple of units that does.
func denFor(units uint64, want *big.Int) uint64 {
	if want.IsUint64() {
		w := want.Uint64()
		hi, lo := bits.Mul64(units/gcd(units, w), w)
		if hi == 0 && lo <= maxDen {
			return lo
		}
	}
	return maxDen / units * units
}

func bigUint(n uint64) *big.Int { return new(big.Int).SetUint64(n) }

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
