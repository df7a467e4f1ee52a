package main

import (
	"math"
	"slices"
	"time"
)

// A scenario measures one thing of every subject that can do it.
type scenario struct {
	name string // also that of its benchmark lines: parts of the form key=value
	// rounds is in how many it takes part at most if it takes seconds, and then ours is
	// shared by two peers; 0: in all.
	rounds int
	// subjects are measured; the first one is ours. It is alone where ours is compared with itself.
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

// value returns the figure with the unit. It is NaN if the subject has none such.
func (s sample) value(unit string) float64 {
	for _, f := range s {
		if f.Unit == unit {
			return f.Value
		}
	}
	return math.NaN()
}

// A scale says how long things are measured.
type scale struct {
	name      string        // of the flag that chooses it in a trial
	decisions time.Duration // a loop of decisions
	blocked   time.Duration // a line that never runs dry
	pacing    time.Duration // the departures of one timeline
	settle    time.Duration // before that
	forget    time.Duration // how long a key owes something after its only call
	crowd     int           // divides the number of waiting calls, and of keys
	patience  time.Duration // for a quiet machine, before each round
}

var (
	full = scale{
		name:      "full",
		decisions: 100 * time.Millisecond,
		blocked:   800 * time.Millisecond,
		pacing:    1500 * time.Millisecond,
		settle:    100 * time.Millisecond,
		forget:    2 * time.Second,
		crowd:     1,
		patience:  10 * time.Second,
	}
	smoke = scale{
		name:      "quick",
		decisions: time.Millisecond,
		blocked:   20 * time.Millisecond,
		pacing:    20 * time.Millisecond,
		settle:    time.Millisecond,
		forget:    50 * time.Millisecond,
		crowd:     100,
		patience:  time.Millisecond,
	}
)

// In how many rounds scenarios of seconds take part.
const (
	targetRounds = 5 // those that a target is about
	otherRounds  = 3
)

// takesPart reports whether a scenario is measured in a round, counted from 0.
func (s scenario) takesPart(round int) bool { return s.rounds == 0 || round < s.rounds }

// scenarios returns all of them, in the order of the report.
func scenarios() []scenario {
	return slices.Concat(
		decisionScenarios(),
		blockedScenarios(),
		waitingScenarios(),
		enqueueScenarios(),
		pacingScenarios(),
		preciseScenarios(),
		[]scenario{cancelScenario(), rateScenario(), keysScenario(), activeScenario(), underScenario(), fairShareScenario()},
		withdrawScenarios(),
		jobScenarios(),
		transportScenarios(),
		sharedScenarios(),
	)
}
