package scheduler

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

// A Rate is an exact number of units per period. It is kept as the fraction
// that was stated: 3 per second is 3/s and never one per 333 ms.
//
// The zero Rate is invalid, as is every Rate with less than one unit or with a
// period that is not positive; whatever takes a Rate refuses an invalid one. To
// stop traffic, pause it: a rate of 0 is an error, never "closed" or "open".
//
// Rates are values: copy them freely. Equal rates may be spelled differently,
// as 60/min and 1/s are; [Rate.Cmp] compares them by their speed.
type Rate struct {
	units     int64
	period    time.Duration
	unlimited bool
}

// Unlimited is the rate of a schedule that delays nothing.
var Unlimited = Rate{unlimited: true}

// Per returns the rate of the given units in each period.
func Per(units int64, period time.Duration) Rate {
	return Rate{units: units, period: period}
}

// PerSecond returns the rate of the given units in each second.
func PerSecond(units int64) Rate { return Per(units, time.Second) }

// PerMinute returns the rate of the given units in each minute.
func PerMinute(units int64) Rate { return Per(units, time.Minute) }

// PerHour returns the rate of the given units in each hour.
func PerHour(units int64) Rate { return Per(units, time.Hour) }

// PerDay returns the rate of the given units in each 24 hours.
func PerDay(units int64) Rate { return Per(units, day) }

// Every returns the rate of one unit in each interval.
func Every(interval time.Duration) Rate { return Per(1, interval) }

const (
	day      = 24 * time.Hour
	maxInt64 = math.MaxInt64
)

// never stands for a time that is too long to be told: about 292 years.
const never = time.Duration(maxInt64)

// Validate returns an error that names the rate unless it is [Unlimited] or has
// at least one unit and a positive period.
func (r Rate) Validate() error {
	switch {
	case r.unlimited:
		return nil
	case r.units < 1:
		return fmt.Errorf("scheduler: rate %v: units must be at least 1 (to stop traffic, pause it)", r)
	case r.period < 1:
		return fmt.Errorf("scheduler: rate %v: the period must be positive", r)
	}
	return nil
}

// Units returns the units of the fraction, as it was stated; 0 for [Unlimited].
func (r Rate) Units() int64 { return r.units }

// Period returns the period of the fraction, as it was stated; 0 for [Unlimited].
func (r Rate) Period() time.Duration { return r.period }

// Interval returns the emission interval T, period/units, rounded up to whole
// nanoseconds. It is 0 for [Unlimited].
func (r Rate) Interval() time.Duration { return r.For(1) }

// For returns how long n units take at the rate: n·T, rounded up to whole
// nanoseconds. A time beyond the range of a Duration is the longest Duration.
// It is 0 for [Unlimited], for an invalid rate and for n below 1.
func (r Rate) For(n int64) time.Duration {
	if r.unlimited || r.Validate() != nil || n < 1 {
		return 0
	}
	return newEmission(r).times(n).ceil()
}

// Scale returns the rate times num/den, exactly. [Unlimited] stays unlimited. It refuses
// an invalid rate, a num or den below 1, and a product that no Rate can hold.
func (r Rate) Scale(num, den int64) (Rate, error) {
	if err := r.Validate(); err != nil {
		return Rate{}, err
	}
	if num < 1 || den < 1 {
		return Rate{}, fmt.Errorf("scheduler: rate %v times %d/%d: both must be at least 1", r, num, den)
	}
	if r.unlimited {
		return r, nil
	}
	a, b := uint64(r.units), uint64(r.period)
	n, d := uint64(num), uint64(den)
	g := gcd(n, d)
	n, d = n/g, d/g
	g = gcd(a, d)
	a, d = a/g, d/g
	g = gcd(n, b)
	n, b = n/g, b/g
	unitsHi, units := bits.Mul64(a, n)
	periodHi, period := bits.Mul64(b, d)
	if unitsHi > 0 || periodHi > 0 || units > maxInt64 || period > maxInt64 {
		return Rate{}, fmt.Errorf("scheduler: rate %v times %d/%d: out of range", r, num, den)
	}
	return Per(int64(units), time.Duration(period)), nil
}

// Cmp compares two valid rates by their speed: it is negative if r is slower
// than other, 0 if both are equally fast and positive if r is faster.
func (r Rate) Cmp(other Rate) int {
	switch {
	case r.unlimited && other.unlimited:
		return 0
	case r.unlimited:
		return +1
	case other.unlimited:
		return -1
	}
	// u1/p1 against u2/p2 is u1·p2 against u2·p1, in 128 bits.
	h1, l1 := bits.Mul64(uint64(r.units), uint64(other.period))
	h2, l2 := bits.Mul64(uint64(other.units), uint64(r.period))
	switch {
	case h1 < h2 || h1 == h2 && l1 < l2:
		return -1
	case h1 == h2 && l1 == l2:
		return 0
	}
	return +1
}
