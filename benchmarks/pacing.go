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
	const callers = 64
	var all []scenario
	for _, hertz := range []int{10, 100, 1_000, 5_000, 20_000} {
		all = append(all, scenario{
			name:     fmt.Sprintf("Pacing/rate=%d", hertz),
			slow:     true,
			subjects: choose(subjects, canPace),
			measure: func(s subject, scale scale) (sample, error) {
				r := perSecond(hertz)
				return measurePacing(s.pace(r, callers), r, callers, max(scale.pacing, 3*r.interval()), scale.settle)
			},
		})
	}
	return all
}

func measurePacing(l limiter, r rate, callers int, d, settle time.Duration) (sample, error) {
	var log departures
	gather(callers, func(ctx context.Context) {
		for l.wait(ctx) == nil {
			log.add()
		}
	})
	time.Sleep(settle)
	early := log.len()
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
