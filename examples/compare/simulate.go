package main

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// A comparison is one pattern through all schedules.
type comparison struct {
	settings
	calls  []arrival
	trials []trial
}

// A trial is what one use of one schedule made of the calls.
type trial struct {
	schedule
	use      string
	outcomes []outcome // of the calls, in order
	measure
}

// An outcome is what became of a call: it left, or it was refused when it came.
type outcome struct {
	arrival
	left    time.Duration
	refused bool
}

const (
	meter = "meter"
	pace  = "pace"
)

// A century is what "however long it takes" comes to. Schedules cut a wait at 292
// years, so a call that would wait for this may as well go.
const century = 100 * 365 * 24 * time.Hour

func compare(set settings, calls []arrival) (*comparison, error) {
	c := &comparison{settings: set, calls: calls}
	for _, s := range set.limits.schedules() {
		for _, use := range []string{meter, pace} {
			fresh, err := s.fresh()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			var outcomes []outcome
			if use == meter {
				outcomes = admit(fresh, set.limits.zero(), calls)
			} else {
				outcomes = line(fresh, set.limits.zero(), calls, set.patience)
			}
			c.trials = append(c.trials, trial{s, use, outcomes, measured(outcomes, set.limits.window)})
		}
	}
	return c, nil
}

// zero returns the instant at which the time of the simulation begins. Windows count
// from it as they count from midnight: it is a boundary.
func (l limits) zero() time.Time {
	return time.Unix(0, 0).UTC().Truncate(l.window)
}

// admit asks of each call whether it may pass now.
func admit(s scheduler.Scheduler, zero time.Time, calls []arrival) []outcome {
	outcomes := make([]outcome, len(calls))
	for i, c := range calls {
		ok, _ := scheduler.Allow(s, zero.Add(c.at), c.cost)
		outcomes[i] = outcome{arrival: c, left: c.at, refused: !ok}
	}
	return outcomes
}

// line lets calls wait their turn. Whatever is before a call in the line has its time
// already, as nothing that comes later can change it; so a call can be told when it
// comes how long it would wait, and be refused for it. No call overtakes: a schedule
// takes a time before its latest departure for the time of that departure.
func line(s scheduler.Scheduler, zero time.Time, calls []arrival, patience time.Duration) []outcome {
	if patience == 0 {
		patience = century
	}
	outcomes := make([]outcome, len(calls))
	for i, c := range calls {
		outcomes[i] = outcome{arrival: c, refused: true}
		if c.cost > s.MaxCost() {
			continue
		}
		comes := zero.Add(c.at)
		due := s.Next(comes, 0, c.cost)
		// As the shaper has it, a wait that is as long as the patience is too long.
		if due.Sub(comes) >= patience {
			continue
		}
		s.Commit(due, due, c.cost)
		outcomes[i].left, outcomes[i].refused = due.Sub(zero), false
	}
	return outcomes
}
