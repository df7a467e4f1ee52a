package main

import (
	"slices"
	"time"
)

// A scenario measures one thing of every subject that can do it.
type scenario struct {
	name string // also that of its benchmark lines: parts of the form key=value
	slow bool   // takes seconds: fewer rounds, and ours is shared by two peers
	// subjects are measured; the first one is ours.
	subjects []subject
	measure  func(subject, scale) (sample, error)
}

// A figure is one number of a trial. Less is better, but for shares of a rate.
type figure struct {
	Unit  string
	Value float64
}

// A sample is all that one trial found, in the order of the report.
type sample []figure

// A scale says how long things are measured.
type scale struct {
	decisions time.Duration // a loop of decisions
	blocked   time.Duration // a line that never runs dry
	pacing    time.Duration // the departures of one timeline
	settle    time.Duration // before that
	crowd     int           // divides the number of those who wait
	patience  time.Duration // for a quiet machine, before each round
}

var (
	full = scale{
		decisions: 100 * time.Millisecond,
		blocked:   800 * time.Millisecond,
		pacing:    2 * time.Second,
		settle:    100 * time.Millisecond,
		crowd:     1,
		patience:  10 * time.Second,
	}
	smoke = scale{
		decisions: time.Millisecond,
		blocked:   20 * time.Millisecond,
		pacing:    20 * time.Millisecond,
		settle:    time.Millisecond,
		crowd:     100,
		patience:  time.Millisecond,
	}
)

// maxSlowRounds is in how many rounds a slow scenario takes part.
const maxSlowRounds = 3

// scenarios returns all of them, in the order of the report.
func scenarios() []scenario {
	return slices.Concat(
		decisionScenarios(),
		blockedScenarios(),
		waitingScenarios(),
		pacingScenarios(),
		[]scenario{cancelScenario(), rateScenario(), transportScenario()},
	)
}
