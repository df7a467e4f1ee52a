package engine

import (
	"math/rand/v2"
	"time"
)

const (
	firstBackoff = time.Second
	maxBackoff   = time.Minute
)

// Backoff returns how long to stay away after the n-th refusal in a row that states no
// time: 1 s, doubled each time, up to a minute. Up to a quarter comes on top, or off at
// the top, so that processes which were refused together do not come back together,
// however often that happens.
func Backoff(n int) time.Duration {
	if n >= 7 {
		return maxBackoff - Jitter(maxBackoff)
	}
	d := firstBackoff << (n - 1)
	return d + Jitter(d)
}

// Jitter returns a part of a quarter of d. Tests replace it.
var Jitter = func(d time.Duration) time.Duration { return time.Duration(rand.Int64N(int64(d / 4))) }
