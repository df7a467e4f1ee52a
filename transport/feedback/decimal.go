package feedback

import (
	"math"
	"strings"
	"time"
)

// forever is what a wait saturates at.
const forever = time.Duration(math.MaxInt64)

// decimal is an unsigned decimal number as it was written. It is never a float: 2.5
// seconds must not come out as a little less than 2.5 seconds, and what is too large
// must saturate and not wrap.
type decimal struct {
	whole int64  // saturates
	frac  string // the digits after the point
}

// parseDecimal reads digits with an optional fraction. A sign, an exponent, NaN, Inf
// and anything else is no decimal.
func parseDecimal(s string) (decimal, bool) {
	whole, frac, _ := strings.Cut(s, ".")
	if whole == "" && frac == "" || !digits(whole) || !digits(frac) {
		return decimal{}, false
	}
	d := decimal{frac: frac}
	for _, c := range []byte(whole) {
		d.whole = plus(times(d.whole, 10), int64(c-'0'))
	}
	return d, true
}

func digits(s string) bool {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

func (d decimal) isZero() bool { return d.whole == 0 && strings.Trim(d.frac, "0") == "" }

// of returns d units, rounded up to the next nanosecond. A unit is at most a day.
func (d decimal) of(unit time.Duration) time.Duration {
	// From the last digit to the first: each step divides by 10, and what it leaves
	// over is only remembered as being there.
	var part int64
	var more bool
	for i := len(d.frac) - 1; i >= 0; i-- {
		part += int64(d.frac[i]-'0') * int64(unit)
		more = more || part%10 != 0
		part /= 10
	}
	if more {
		part++
	}
	return time.Duration(plus(times(d.whole, int64(unit)), part))
}

// times and plus are for numbers that are not negative. They saturate.

func times(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
