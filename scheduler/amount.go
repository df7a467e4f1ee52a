package scheduler

import (
	"math"
	"math/bits"
	"time"
)

// An amount is a number of units that need not be whole: units and frac/base of one more,
// where base is the period of the emission, unless another is named. A negative amount has
// negative units; its fraction still counts upwards. Amounts beyond 2^61 units stay
// there, which is far more than any limit.
type amount struct {
	units int64
	frac  uint64
}

const maxUnits = 1 << 61

// maxBucket is the largest bucket, with room for a cost beside its content.
const maxBucket = maxUnits / 2

// whole returns an amount of n units.
func whole(n int64) amount {
	return amount{units: max(-maxUnits, min(n, maxUnits))}
}

// drops returns how many units are emitted in d.
func (e emission) drops(d time.Duration) amount {
	hi, lo := bits.Mul64(uint64(max(d, 0)), e.units)
	if hi >= e.period {
		return whole(maxUnits)
	}
	units, frac := bits.Div64(hi, lo, e.period)
	if units >= maxUnits {
		return whole(maxUnits)
	}
	return amount{units: int64(units), frac: frac}
}

// timeFor returns how long a takes to be emitted, rounded up; no time if a is
// not positive.
func (e emission) timeFor(a amount) time.Duration {
	if a.units < 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(a.units), e.period)
	lo, carry := bits.Add64(lo, a.frac, 0)
	hi += carry
	if hi >= e.units {
		return never
	}
	ns, rest := bits.Div64(hi, lo, e.units)
	return span{ns: min(ns, uint64(never)), frac: rest}.ceil()
}

// sum returns a+b.
func (e emission) sum(a, b amount) amount { return sumOf(e.period, a, b) }

// difference returns a-b.
func (e emission) difference(a, b amount) amount { return differenceOf(e.period, a, b) }

func sumOf(base uint64, a, b amount) amount {
	s := whole(a.units + b.units)
	if s.frac = a.frac + b.frac; s.frac >= base {
		s.frac -= base
		s.units++
	}
	return s
}

func differenceOf(base uint64, a, b amount) amount {
	d := whole(a.units - b.units)
	if d.frac = a.frac - b.frac; a.frac < b.frac {
		d.frac += base
		d.units--
	}
	return d
}

// resize returns a with its fraction counted in the period of q, rounded down.
func (e emission) resize(a amount, q emission) amount {
	hi, lo := bits.Mul64(a.frac, q.period)
	a.frac, _ = bits.Div64(hi, lo, e.period) // below q.period, as a.frac is below e.period
	return a
}

// saturatingSum returns a+b for a, b >= 0, or the largest int64.
func saturatingSum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
