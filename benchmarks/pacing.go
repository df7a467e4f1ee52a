package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Pacing: 64 callers wait all the time, and each departure is stamped by the goroutine
// that left. Figures are those of timeline, and the CPU time per departure as in a
// blocked wait.
func pacingScenarios() []scenario {
	var all []scenario
	for _, hertz := range []int{10, 100, 1_000, 5_000, 20_000} {
		all = append(all, pacingScenario("Pacing", hertz, otherRounds, pacers(otherRounds)))
	}
	return all
}

// The same with precise timing, beside ours without and x/time; and with a grain, which
// is a bound on what that costs, beside the two that it stands between.
func preciseScenarios() []scenario {
	sluice, xtime := subjects[0], subjects[1]
	var all []scenario
	for _, hertz := range []int{10, 100, 1_000, 5_000, 20_000} {
		all = append(all, pacingScenario("Precise", hertz, targetRounds, []subject{precise, xtime, sluice}))
	}
	return append(all, pacingScenario("Grain", 20_000, otherRounds, []subject{grained, xtime, precise}))
}

func pacingScenario(family string, hertz, rounds int, subjects []subject) scenario {
	const callers = 64
	return scenario{
		name:     fmt.Sprintf("%s/rate=%d", family, hertz),
		rounds:   rounds,
		subjects: subjects,
		measure: func(s subject, scale scale) (sample, error) {
			return measurePacing(s.pace(perSecond(hertz), callers), perSecond(hertz), callers, scale)
		},
	}
}

func measurePacing(l limiter, r rate, callers int, scale scale) (sample, error) {
	var log departures
	gather(callers, func(ctx context.Context) {
		for l.wait(ctx) == nil {
			log.add()
		}
	})
	time.Sleep(scale.settle)
	early := log.len()
	d := max(scale.pacing, 3*r.interval())
	u := startUsage()
	time.Sleep(d)
	u.stop()

	stamps := log.all()
	if len(stamps) < 2 || len(stamps) == early {
		return nil, fmt.Errorf("%d calls left within %v", len(stamps), d)
	}
	cpu := figure{"cpu-us/departure", micros(u.cpu) / float64(len(stamps)-early)}
	return append(timeline(stamps, r.interval()), cpu), nil
}

// departures is a log of instants.
type departures struct {
	mu sync.Mutex
	at []time.Time
}

func (d *departures) add() {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = append(d.at, now)
}

func (d *departures) len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.at)
}

// all ends the log and returns it.
func (d *departures) all() []time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.at
	d.at = nil
	return at
}
