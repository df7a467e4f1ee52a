package main

import (
	"context"
	"time"
)

// A cancel storm: the one context of 100,000 waiting calls ends. wall-ms is the time
// from there until all have returned, cpu-us/call the user and system time of the
// process divided by the calls. The subject select waits for nothing but the context:
// what is left is waking the goroutines.
func cancelScenario() scenario {
	return scenario{
		name:     "Cancel/calls=100000",
		rounds:   targetRounds,
		subjects: append(choose(subjects, canCancel), bareSelect),
		measure: func(s subject, scale scale) (sample, error) {
			calls := 100_000 / scale.crowd
			return measureCancel(s.pace(standstill, calls), calls)
		},
	}
}

// bareSelect is the floor: it paces nothing.
var bareSelect = subject{name: "select", pace: func(rate, int) limiter {
	passed := false
	return limiter{cancels: true, wait: func(ctx context.Context) error {
		if !passed { // as the others let the first call pass
			passed = true
			return nil
		}
		return selectOn(ctx)
	}}
}}

// selectOn blocks until ctx ends, in a select of two cases as the least that a waiting
// call has.
func selectOn(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-never:
		return nil
	}
}

// never is a channel on which nothing comes.
var never = make(chan struct{})

func measureCancel(l limiter, calls int) (sample, error) {
	elapsed, cpu, err := cancelAll(l, calls)
	if err != nil {
		return nil, err
	}
	return sample{
		{"wall-ms", micros(elapsed) / 1e3},
		{"cpu-us/call", micros(cpu) / float64(calls)},
	}, nil
}

// cancelAll has calls wait at a limiter that stands still, and then gives them all up.
func cancelAll(l limiter, calls int) (elapsed, cpu time.Duration, err error) {
	c, err := standInLine(l, calls, func() {})
	if err != nil {
		return 0, 0, err
	}
	u := startUsage()
	c.disperse()
	u.stop()
	return u.elapsed, u.cpu, nil
}
