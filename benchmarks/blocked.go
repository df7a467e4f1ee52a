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
// the departures divided by those that the rate allows. With one caller there is no
// other to leave while it is woken late, so its share tells what lateness costs.
func blockedScenarios() []scenario {
	var all []scenario
	for _, line := range lines {
		all = append(all, scenario{
			name:     line.name(),
			rounds:   line.rounds,
			subjects: pacers(line.rounds),
			measure: func(s subject, scale scale) (sample, error) {
				callers := max(1, line.callers/scale.crowd)
				return measureBlocked(s.pace(line.rate(), callers), line.rate(), callers, scale)
			},
		})
	}
	return all
}

// arriving is what each of many callers that come at once may need to get past the others.
const arriving = 10 * time.Microsecond

// lines are how many wait all the time, and for how many per second.
var lines = []crowded{
	{1_000, 64, targetRounds},
	{1_000, 10_000, otherRounds},
	{10_000, 1, targetRounds},
	{10_000, 100, otherRounds},
	{10_000, 10_000, targetRounds},
	{10_000, 100_000, otherRounds},
	{100_000, 64, targetRounds}, // faster than timers can be armed one by one
}

type crowded struct{ hertz, callers, rounds int }

func (l crowded) rate() rate   { return perSecond(l.hertz) }
func (l crowded) name() string { return fmt.Sprintf("Blocked/rate=%d/callers=%d", l.hertz, l.callers) }

func measureBlocked(l limiter, r rate, callers int, scale scale) (sample, error) {
	var departed atomic.Int64
	// Waiters that know no context would go on at the end: the process ends instead.
	before := count().blocked
	gather(callers, func(ctx context.Context) {
		for l.wait(ctx) == nil {
			departed.Add(1)
		}
	})
	if callers >= 1000 {
		awaitMost(before, callers)
		time.Sleep(time.Duration(callers) * arriving) // some may be blocked at a lock until then
	}
	return measureDepartures(&departed, r, scale)
}

// measureDepartures looks at a line that moves.
func measureDepartures(departed *atomic.Int64, r rate, scale scale) (sample, error) {
	time.Sleep(scale.settle)

	u := startUsage()
	n := departed.Load()
	time.Sleep(scale.blocked)
	n = departed.Load() - n
	u.stop()
	if n == 0 {
		return nil, fmt.Errorf("no call left within %v", scale.blocked)
	}
	return sample{
		{"cpu-us/departure", micros(u.cpu) / float64(n)},
		{"allocs/departure", float64(u.allocs) / float64(n)},
		{"share-of-rate", float64(n) / (u.elapsed.Seconds() * r.hertz())},
	}, nil
}
