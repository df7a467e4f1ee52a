package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// A blocked wait: callers that wait all the time, each one again as soon as it has left.
// Once they stand in the line, departures are counted for a while. cpu-us/departure is
// the user and system time of the process divided by departures, garbage collection and
// waking up included; allocs/departure are those of the whole process; share-of-rate is
// the departures divided by those that the rate allows. With one caller there is nobody
// else to leave while it is woken late, so its share tells what lateness costs.
func blockedScenarios() []scenario {
	var all []scenario
	for _, hertz := range []int{1_000, 10_000} {
		for _, callers := range []int{1, 100, 10_000} {
			all = append(all, scenario{
				name:     fmt.Sprintf("Blocked/rate=%d/callers=%d", hertz, callers),
				slow:     true,
				subjects: choose(subjects, canPace),
				measure: func(s subject, scale scale) (sample, error) {
					callers := max(1, callers/scale.crowd)
					return measureBlocked(s.pace(perSecond(hertz), callers), perSecond(hertz), callers, scale)
				},
			})
		}
	}
	return all
}

func measureBlocked(l limiter, r rate, callers int, scale scale) (sample, error) {
	var departed atomic.Int64
	// Who knows no context would keep us waiting at the end: the process ends instead.
	before := count().blocked
	gather(callers, func(ctx context.Context) {
		for l.wait(ctx) == nil {
			departed.Add(1)
		}
	})
	if callers >= 1000 {
		awaitBlocked(before, callers*9/10)
	}
	time.Sleep(scale.settle)

	u := startUsage()
	n := departed.Load()
	time.Sleep(scale.blocked)
	n = departed.Load() - n
	u.stop()
	if n == 0 {
		return nil, fmt.Errorf("nobody left within %v", scale.blocked)
	}
	return sample{
		{"cpu-us/departure", micros(u.cpu) / float64(n)},
		{"allocs/departure", float64(u.allocs) / float64(n)},
		{"share-of-rate", float64(n) / (u.elapsed.Seconds() * r.hertz())},
	}, nil
}
