package partner

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

// A Limit states what an endpoint accepts: Units per Window, in one of two ways.
//
// By default it is a sliding log: in any half-open window of length Window at most
// Units units are accepted. A call exactly one Window after another is outside its
// window. A call of more than Units can never be accepted.
//
// With Even set, it is even spacing: after a call of n units the next must stay
// away for n·Window/Units, whatever its own size. So 10 per second in this way
// refuses two calls that come less than 100 ms apart, although one second would
// have room for both.
//
// Calls are judged in the order of their arrival, and what is refused costs
// nothing. All arithmetic is in whole nanoseconds and exact.
type Limit struct {
	Units  int64
	Window time.Duration
	Even   bool

	// Slack is how much too early a call may be without being refused, because
	// networks bring calls closer together than they left. It shortens the window,
	// or the time that a call must stay away, and must be shorter than it. The
	// score does not know it: a worst window is as long as Window.
	Slack time.Duration
}

func (l Limit) validate() error {
	switch {
	case l.Window <= 0:
		return fmt.Errorf("window %v: must be positive", l.Window)
	case l.Units <= 0:
		return fmt.Errorf("units %d: must be positive", l.Units)
	case l.Slack < 0:
		return fmt.Errorf("slack %v: must not be negative", l.Slack)
	}
	apart := l.Window
	if l.Even {
		apart = l.spacing(1)
	}
	if l.Slack >= apart {
		return fmt.Errorf("slack %v: must be less than %v", l.Slack, apart)
	}
	return nil
}

// largest returns the most units that one call can ever bring.
func (l Limit) largest() int64 {
	if l.Even {
		return math.MaxInt64
	}
	return l.Units
}

// spacing returns n·Window/Units, rounded up: an interval in whole nanoseconds is
// long enough exactly if it is as long as this.
func (l Limit) spacing(n int64) time.Duration {
	hi, lo := bits.Mul64(uint64(n), uint64(l.Window))
	if hi >= uint64(l.Units) {
		return math.MaxInt64 // Div64 would overflow
	}
	quotient, rest := bits.Div64(hi, lo, uint64(l.Units))
	if quotient >= math.MaxInt64 {
		return math.MaxInt64
	}
	if rest > 0 {
		quotient++
	}
	return time.Duration(quotient)
}

// meter returns a meter that has not seen a call yet.
func (l Limit) meter() meter {
	if l.Even {
		return &evenMeter{limit: l}
	}
	return &logMeter{units: l.Units, span: l.Window - l.Slack}
}
