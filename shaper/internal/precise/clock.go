package precise

import (
	"math"
	"time"
)

// epoch carries a reading of the monotonic clock, the one that the timerfd goes by.
var epoch = time.Now()

// sinceEpoch reads the monotonic clock, in nanoseconds.
func sinceEpoch() int64 { return int64(time.Since(epoch)) }

// after returns the instant d after now: now if d is negative, the last one that there
// is instead of one that does not fit.
func after(now int64, d time.Duration) int64 {
	d = max(d, 0)
	if int64(d) > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + int64(d)
}
