package main

import (
	"slices"
)

// A result is what the rounds of a scenario found.
type result struct {
	scenario scenario
	rounds   []round
}

// A round is a pass of a scenario over all its subjects.
type round struct {
	number int
	busy   float64 // the share of the CPUs that was busy before; NaN if unknown
	trials []trial
}

// A trial is one subject in one round. A peer's has the trial of ours next to it.
type trial struct {
	subject int // the index; 0 is ours
	found   sample
	others  float64 // the share of the CPUs that other processes used meanwhile
	ours    int     // of a peer: which trial of the round to compare with
}

// measure runs a round.
func (r *result) measure(number int, scale scale) error {
	now := round{number: number, busy: busyShare(min(look, scale.patience)), trials: order(len(r.scenario.subjects), r.scenario.rounds > 0)}
	for i := range now.trials {
		t := &now.trials[i]
		found, others, err := fork(r.scenario, r.scenario.subjects[t.subject], scale)
		if err != nil {
			return err
		}
		t.found, t.others = found, others
	}
	r.rounds = append(r.rounds, now)
	return nil
}

// order returns the trials of one round: peer, ours, peer, ours. With shared each of
// ours stands between two peers and is compared with both. Without peers ours is alone.
func order(subjects int, shared bool) []trial {
	if subjects == 1 {
		return []trial{{subject: 0}}
	}
	var trials []trial
	for peer := 1; peer < subjects; peer++ {
		ours := len(trials) + 1
		trials = append(trials, trial{subject: peer, ours: ours}, trial{subject: 0})
		if peer+1 < subjects && shared {
			peer++
			trials = append(trials, trial{subject: peer, ours: ours})
		}
	}
	return trials
}

// value returns the median of a figure of a subject.
func (r *result) value(subject int, unit string) float64 {
	var values []float64
	for _, round := range r.rounds {
		for _, t := range round.trials {
			if t.subject == subject {
				values = append(values, t.found.value(unit))
			}
		}
	}
	return median(values)
}

// ratio returns the median over the rounds of ours to the peer's.
func (r *result) ratio(peer int, unit string) float64 {
	var ratios []float64
	for _, round := range r.rounds {
		for _, t := range round.trials {
			if t.subject == peer {
				ours := round.trials[t.ours].found.value(unit)
				ratios = append(ratios, ratio(ours, t.found.value(unit)))
			}
		}
	}
	return median(ratios)
}

// units returns those of our figures, in the order of the report.
func (r *result) units() []string {
	var units []string
	ours := r.rounds[0].trials[r.rounds[0].trials[0].ours] // a peer begins
	for _, f := range ours.found {
		units = append(units, f.Unit)
	}
	return units
}

// noisy returns in how many rounds the machine was not quiet, before or during a trial.
func (r *result) noisy() int {
	n := 0
	for _, round := range r.rounds {
		if round.busy > quiet || slices.ContainsFunc(round.trials, func(t trial) bool { return t.others > quiet }) {
			n++
		}
	}
	return n
}

// names returns the names of the subjects.
func (s scenario) names() []string {
	var names []string
	for _, su := range s.subjects {
		names = append(names, su.name)
	}
	return names
}

// sameTable reports whether two results can stand in one table.
func sameTable(a, b *result) bool {
	return family(a.scenario.name) == family(b.scenario.name) &&
		slices.Equal(a.scenario.names(), b.scenario.names())
}
