package partner

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

// A Limit states what an endpoint accepts: Units per Window, in one of several
// ways.
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
// With By set, a meter of package scheduler counts, as its [Rule] says.
//
// Calls are judged in the order of their arrival, and what is refused costs
// nothing. All arithmetic is in whole nanoseconds and exact.
type Limit struct {
	Units  int64
	Window time.Duration
	Even   bool
	By     Rule

	// Burst is how many units may come back to back after an idle spell, for a
	// TokenBucket, a LeakyBucket or a GCRA. Zero means 1 for a GCRA and Units for
	// the buckets.
	Burst int64

	// Slack is how much too early a call may be without being refused, because
	// networks bring calls closer together than they left. It shortens the window,
	// or the time that a call must stay away, and must be shorter than it. With By
	// set it shortens the wait instead, and the next call pays for that. The score
	// does not know it: a worst window is as long as Window.
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
	case l.Even && l.By != "":
		return fmt.Errorf("rule %q: must not be even too", l.By)
	case l.Burst != 0 && !l.By.hasBurst():
		return fmt.Errorf("burst %d: only token-bucket, leaky-bucket and gcra have one", l.Burst)
	}
	if l.By != "" {
		if _, err := l.schedule(); err != nil {
			return err
		}
	}
	apart := l.Window
	if l.Even || l.By.hasBurst() {
		apart = l.spacing(1)
	}
	if l.Slack >= apart {
		return fmt.Errorf("slack %v: must be less than %v", l.Slack, apart)
	}
	return nil
}

// largest returns the most units that one call can ever bring.
func (l Limit) largest() int64 {
	switch {
	case l.Even, l.By == GCRA:
		return math.MaxInt64
	case l.By.hasBurst():
		return l.burst()
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

// meter returns a meter that has not seen a call yet and counts time from epoch. The
// limit is valid.
func (l Limit) meter(epoch time.Time) meter {
	if l.By != "" {
		schedule, err := l.schedule()
		if err != nil {
			panic(err) // validate would have told
		}
		return &scheduleMeter{epoch: epoch, schedule: schedule, slack: l.Slack}
	}
	if l.Even {
		return &evenMeter{limit: l}
	}
	return &logMeter{units: l.Units, span: l.Window - l.Slack}
}
