package scheduler

import (
	"fmt"
	"time"
)

// Within returns the GCRA that never exceeds limit in any closed window, at the
// highest rate that this allows. As burst + floor((w+J)/T) units fit into a closed
// window of length w, floor((w+J)/T) must not exceed limit - burst, so T is just
// above (w+J)/(limit-burst+1): the rate is limit-burst+1 units per window, tolerance
// and nanosecond.
//
// It holds for calls that cost no more than the burst. With a larger cost c up to
// limit + c - burst units fit into a window, as such a call leaves at once and is paid
// off afterwards: state a burst of the largest cost.
//
// Use it for "no more than 1,000 in any 60 seconds", when even spacing is as good as
// a burst. With a burst of 1 it uses all that the partner allows, as a [SlidingLog]
// does, without the log. Networks bunch calls together: leave a margin.
//
// It refuses a burst above the limit, and what [NewGCRA] refuses.
func Within(limit int64, window time.Duration, burst int64, opts ...GCRAOption) (*GCRA, error) {
	switch {
	case window <= 0:
		return nil, fmt.Errorf("scheduler: window %v: must be positive", window)
	case burst < 1:
		return nil, fmt.Errorf("scheduler: burst %d: must be at least 1", burst)
	case limit < burst:
		return nil, fmt.Errorf("scheduler: limit %d with burst %d: the burst must not be above it", limit, burst)
	}
	probe := GCRA{pace: new(pace)}
	for _, opt := range opts {
		opt(&probe)
	}
	if probe.tolerance >= never-window {
		return nil, fmt.Errorf("scheduler: window %v with tolerance %v: longer than %v", window, probe.tolerance, never)
	}
	return NewGCRA(Per(limit-burst+1, window+probe.tolerance+1), burst, opts...)
}
