// Package schedulertest is the conformance suite for implementations of
// [scheduler.Scheduler]. The test of a new schedule runs it through [Run]:
//
//	func TestConformance(t *testing.T) {
//		schedulertest.Run(t, schedulertest.Config{
//			New:      func() scheduler.Scheduler { return must(NewMine(10, time.Second)) },
//			Step:     100 * time.Millisecond,
//			Conforms: myLimitAsPartnersTellIt,
//		})
//	}
package schedulertest

import (
	"testing"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// Config describes the schedule under test.
type Config struct {
	// New returns a fresh schedule. Every call must return an equal one.
	New func() scheduler.Scheduler

	// Conforms is the definition of the limit, told as plainly as it can be: may n
	// units leave at an instant, after all those that left? If there are closed times it
	// tells them, too. It must share no code
	// with the schedule, and may be slow. Without it the suite only finds out
	// whether a schedule agrees with itself; leave it out where the definition has
	// no whole nanoseconds.
	Conforms func(left []Departure, at time.Time, n int64) bool

	// Step is the time in which the schedule lets about one unit leave. Random
	// arrivals are spread around it.
	Step time.Duration

	// ExactAhead says that Next with ahead > 0 is exact for units that leave one
	// by one. Otherwise it has to be a lower bound.
	ExactAhead bool

	// Origin is the first instant. The zero value means some day in 2026.
	Origin time.Time

	// Seed makes the random histories. The same seed makes the same ones.
	Seed uint64
}

// A Departure is a call of n units that left.
type Departure struct {
	At time.Time
	N  int64
}

// Run holds the schedule of c to the contract of [scheduler.Scheduler], and of those
// optional interfaces that it has, one subtest for each promise.
func Run(t *testing.T, c Config) {
	if c.New == nil || c.Step <= 0 {
		t.Fatalf("schedulertest: Config needs New and a positive Step, not %v", c.Step)
	}
	if c.Origin.IsZero() {
		c.Origin = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	}
	for _, p := range promises {
		if p.made == nil || p.made(c) {
			t.Run(p.name, func(t *testing.T) { p.check(c, t) })
		}
	}
}

// A promise is a part of the contract.
type promise struct {
	name  string
	made  func(Config) bool // nil: by every schedule
	check func(Config, testing.TB)
}

var promises = []promise{
	{"NextIsNotBeforeT", nil, Config.nextIsNotBeforeT},
	{"NextChangesNothing", nil, Config.nextChangesNothing},
	{"NextIsTheEarliest", nil, Config.nextIsTheEarliest},
	{"NextIsWhatTheDefinitionAllows", func(c Config) bool { return c.Conforms != nil }, Config.nextIsWhatTheDefinitionAllows},
	{"NextAheadMatchesDepartures", nil, Config.nextAheadMatchesDepartures},
	{"NextIsMonotone", nil, Config.nextIsMonotone},
	{"DeparturesMakeNothingEarlier", nil, Config.departuresMakeNothingEarlier},
	{"GreedyReleaseEqualsBruteForce", nil, Config.greedyReleaseEqualsBruteForce},
	{"StaleTimeMintsNothing", nil, Config.staleTimeMintsNothing},
	{"ExtremesNeverWrap", nil, Config.extremesNeverWrap},
	{"MaxCostIsHonest", nil, Config.maxCostIsHonest},
	{"StateOutlivesTheProcess", has[stater], Config.stateOutlivesTheProcess},
	{"Rated", has[scheduler.Rated], Config.rateIsKept},
	{"RateSetter", has[scheduler.RateSetter], Config.rateCanBeSet},
	{"Forfeiter", has[scheduler.Forfeiter], Config.forfeitGivesUpWhatIsSaved},
	{"Tolerant", has[scheduler.Tolerant], Config.lateDeparturesGainNothing},
	{"Notifier", has[scheduler.Notifier], Config.notifierDoesNotCallBack},
	{"Holder", has[scheduler.Holder], Config.holdMakesNothingEarlier},
	{"Forgettable", has[scheduler.Forgettable], Config.freshMeansFresh},
	{"Settler", func(c Config) bool { return scheduler.CanSettle(c.New()) }, Config.settledIsAsIfKnown},
}

// has reports whether the schedule has an optional interface.
func has[T any](c Config) bool {
	_, ok := c.New().(T)
	return ok
}
