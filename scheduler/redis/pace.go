package redis

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// Lua's numbers are doubles, which hold every integer up to 2^53. The limits here keep
// all that the script computes below that.
const (
	maxTerm = 1 << 51 // of one term, in microseconds: 71 years
	maxP    = 1 << 46 // two years between units of an even rate
	maxQ    = 1 << 40
)

// A pace is a rate made ready for the script: T is p/q microseconds in lowest terms.
type pace struct {
	p, q int64
}

// A moment is a number of microseconds, and frac/q of one more.
type moment struct {
	us, frac int64
}

func newPace(r scheduler.Rate) (pace, error) {
	if err := r.Validate(); err != nil {
		return pace{}, fmt.Errorf("redis: %w", err)
	}
	if r == scheduler.Unlimited {
		return pace{}, fmt.Errorf("redis: rate %v: leaves nothing to share", r)
	}
	hi, q := bits.Mul64(uint64(r.Units()), uint64(time.Microsecond))
	if hi > 0 {
		return pace{}, fmt.Errorf("redis: rate %v: too many units for the numbers of the script", r)
	}
	p := uint64(r.Period())
	g := gcd(p, q)
	p, q = p/g, q/g
	if p > maxP || q > maxQ {
		return pace{}, fmt.Errorf("redis: rate %v: its fraction is too large for the numbers of the script", r)
	}
	return pace{int64(p), int64(q)}, nil
}

// maxUnits is how many units one step can reserve.
func (p pace) maxUnits() int64 { return min(maxTerm/p.p, math.MaxInt32) }

// add returns the moment n·T after m. n is at most maxUnits.
func (p pace) add(m moment, n int64) moment {
	total := m.frac + n*p.p
	return moment{m.us + total/p.q, total % p.q}
}

// sub returns the moment n·T before m.
func (p pace) sub(m moment, n int64) moment {
	total := m.frac - n*p.p
	us, rest := total/p.q, total%p.q
	if rest < 0 {
		us, rest = us-1, rest+p.q
	}
	return moment{m.us + us, rest}
}

// within returns how many intervals fit into d.
func (p pace) within(d time.Duration) int64 {
	hi, lo := bits.Mul64(uint64(d.Microseconds()), uint64(p.q))
	if hi >= uint64(p.p) {
		return p.maxUnits()
	}
	n, _ := bits.Div64(hi, lo, uint64(p.p))
	return int64(min(n, uint64(p.maxUnits())))
}

// after returns how long after the given microsecond the moment comes, rounded up to
// whole nanoseconds.
func (p pace) after(m moment, us int64) time.Duration {
	const perUs = int64(time.Microsecond)
	// frac is below maxQ, so times 1000 it is below 2^50.
	return time.Duration((m.us-us)*perUs + (m.frac*perUs+p.q-1)/p.q)
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// before reports whether a moment comes before another one.
func (m moment) before(other moment) bool {
	return m.us < other.us || m.us == other.us && m.frac < other.frac
}
