package scheduler

import (
	"fmt"
	"time"
)

// Within returns the pace that never exceeds limit in any closed window, at the
// highest rate that this allows: limit - burst units per window, with that burst. A
// pace of limit per window would let burst more leave, for burst + floor(w/T) units
// fit into a window of length w. A tolerance counts as a longer window.
//
// Use it for "no more than 1,000 in any 60 seconds", when even spacing is as good as
// a burst; it uses (limit-burst)/limit of what the partner allows, where a
// [SlidingLog] uses all of it. Networks bunch calls together: leave a margin.
//
// It refuses a burst that is not below the limit, and what [NewGCRA] refuses.
func Within(limit int64, window time.Duration, burst int64, opts ...GCRAOption) (*GCRA, error) {
	switch {
	case window <= 0:
		return nil, fmt.Errorf("scheduler: window %v: must be positive", window)
	case burst < 1:
		return nil, fmt.Errorf("scheduler: burst %d: must be at least 1", burst)
	case limit <= burst:
		return nil, fmt.Errorf("scheduler: limit %d with burst %d: the limit must be the larger one", limit, burst)
	}
	var probe GCRA
	for _, opt := range opts {
		opt(&probe)
	}
	if probe.tolerance > never-window {
		return nil, fmt.Errorf("scheduler: window %v with tolerance %v: longer than %v", window, probe.tolerance, never)
	}
	return NewGCRA(Per(limit-burst, window+probe.tolerance), burst, opts...)
}
