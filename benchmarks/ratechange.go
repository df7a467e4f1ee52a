package main

import (
	"fmt"
	"sync/atomic"
	"time"
)

// A rate change while 10,000 calls wait at a limiter that stands still. set-us is the
// time that one change takes, the mean of a hundred between two rates that are too slow
// for a call to leave. After a last one, to 10,000 per second, reached is the share of
// the calls due by then that have left within half a second. It is 0 for a limiter
// whose changes do not reach waiting calls.
func rateScenario() scenario {
	return scenario{
		name:     "RateChange/calls=10000",
		rounds:   targetRounds,
		subjects: choose(subjects, canSetRate),
		measure: func(s subject, scale scale) (sample, error) {
			calls := 10_000 / scale.crowd
			return measureRateChange(s.pace(standstill, calls), calls)
		},
	}
}

func measureRateChange(l limiter, calls int) (sample, error) {
	var left atomic.Int64
	if _, err := standInLine(l, calls, func() { left.Add(1) }); err != nil {
		return nil, err
	}
	const changes = 100
	took := changeRates(l, changes)
	if n := left.Load(); n > 0 {
		return nil, fmt.Errorf("%d calls left at a standstill", n)
	}
	fast := perSecond(10_000)
	span := min(500*time.Millisecond, time.Duration(calls)*fast.interval())
	l.setRate(fast)
	time.Sleep(span)
	return sample{
		{"set-us", micros(took) / changes},
		{"reached", float64(left.Load()) / (span.Seconds() * fast.hertz())},
	}, nil
}

// changeRates changes between two slow rates n times.
func changeRates(l limiter, n int) time.Duration {
	began := time.Now()
	for i := range n {
		l.setRate(standstill * rate(1+i%2))
	}
	return time.Since(began)
}
