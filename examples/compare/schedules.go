package main

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// limits are what the partner states: limit units in a window.
type limits struct {
	limit  int64
	window time.Duration
	burst  int64
}

const (
	maxLimit  = 10_000 // so that no pattern has more than maxCalls calls
	minWindow = time.Millisecond
	maxWindow = 366 * 24 * time.Hour
)

func (l limits) check() error {
	switch {
	case l.limit < 2 || l.limit > maxLimit:
		// A limit of 1 leaves nothing to choose: every schedule is the pacer.
		return fmt.Errorf("-limit %d: must be from 2 to %d", l.limit, maxLimit)
	case l.window < minWindow || l.window > maxWindow:
		return fmt.Errorf("-window %v: must be from %v to %v", l.window, minWindow, maxWindow)
	case l.burst < 1 || l.burst > maxLimit:
		return fmt.Errorf("-burst %d: must be from 1 to %d", l.burst, maxLimit)
	}
	return nil
}

// A schedule is one way to read the limits.
type schedule struct {
	name  string
	about string
	fresh func() (scheduler.Scheduler, error)
}

// schedules returns all ways to read them, the gentlest first. A GCRA with the burst
// is not among them, as it is the token bucket in another notation.
func (l limits) schedules() []schedule {
	rate := scheduler.Per(l.limit, l.window)
	// A pace that never exceeds the limit is the slower the larger its burst is.
	inside := min(l.burst, l.limit/2)
	double := scheduler.Per(2*l.limit, l.window)
	window := plain(l.window)
	return []schedule{
		{"pacer", fmt.Sprintf("GCRA, %v, burst 1", rate), func() (scheduler.Scheduler, error) {
			return scheduler.NewGCRA(rate, 1)
		}},
		{"within", fmt.Sprintf("GCRA, burst %d, within the limit", inside), func() (scheduler.Scheduler, error) {
			return scheduler.Within(l.limit, l.window, inside)
		}},
		{"token bucket", fmt.Sprintf("%v, burst %d", rate, l.burst), func() (scheduler.Scheduler, error) {
			return scheduler.NewTokenBucket(rate, l.burst)
		}},
		{"leaky bucket", fmt.Sprintf("%v, capacity %d", rate, l.burst), func() (scheduler.Scheduler, error) {
			return scheduler.NewLeakyBucket(rate, l.burst)
		}},
		{"fixed window", fmt.Sprintf("%d in each %s by the clock", l.limit, window), func() (scheduler.Scheduler, error) {
			return scheduler.NewFixedWindow(l.limit, l.window)
		}},
		{"sliding counter", fmt.Sprintf("%d in about any %s", l.limit, window), func() (scheduler.Scheduler, error) {
			return scheduler.NewSlidingCounter(l.limit, l.window)
		}},
		{"sliding log", fmt.Sprintf("%d in any %s", l.limit, window), func() (scheduler.Scheduler, error) {
			return scheduler.NewSlidingLog(l.limit, l.window)
		}},
		{"all of two", fmt.Sprintf("sliding log + GCRA, %v", double), func() (scheduler.Scheduler, error) {
			log, err := scheduler.NewSlidingLog(l.limit, l.window)
			if err != nil {
				return nil, err
			}
			pace, err := scheduler.NewGCRA(double, 1)
			if err != nil {
				return nil, err
			}
			return scheduler.All(log, pace), nil
		}},
	}
}
