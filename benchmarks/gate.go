package main

import (
	"fmt"
	"io"
	"math"
	"time"
)

// A check is a bound that no change may break. It is for machines that are busy with
// other things: a ratio to a peer, of the best that each of the two reached in turns, with
// a margin of two or so to what is usual. Allocations are exact on any machine.
type check struct {
	scenario string
	unit     string
	peer     string // empty: the figure itself counts
	most     float64
}

var checks = []check{
	{"ReadyWait/goroutines=1", "allocs/op", "", 0},
	{"ReadyWait/goroutines=1", "ns/op", "xtime", 0.65},
	{"ReadyWait/goroutines=16", "ns/op", "xtime", 0.75},
	{"Allow/goroutines=1", "ns/op", "xtime", 0.8},
	{"Blocked/rate=100000/callers=64", "allocs/departure", "", nearlyNone},
	{"Blocked/rate=100000/callers=64", "cpu-us/departure", "xtime", 1.3},
	{"Waiting/calls=10000", "beyond-bytes/call", "xtime", 1.1},
	{"Enqueued/calls=10000", "bytes/call", "", 160},
	{"Enqueue/rate=100000/calls=10000", "cpu-us/departure", "xtime-afterfunc", 1.2},
	{"Withdraw/calls=100000/line=weights", "growth", "", 5},
	{"Transport/base=stub", "added-allocs/request", "", 0},
	{"Transport/base=stub", "added-ns/request", "xtime", 1.2},
}

// turns is how often each side of a check is measured. The best counts: whatever else
// the machine does makes it slower, never faster.
const turns = 5

// gate makes all checks, tells how each ended, and returns an error if one failed.
func gate(w io.Writer) error {
	failed := 0
	for _, c := range checks {
		value, err := c.measure()
		if err != nil {
			return err
		}
		verdict := "ok"
		if !(value <= c.most) { // also if it is no number
			verdict = "FAILED"
			failed++
		}
		what := c.unit
		if c.peer != "" {
			what += " / " + c.peer
		}
		fmt.Fprintf(w, "%-6s %s %s: %.3g, at most %.3g\n", verdict, c.scenario, what, value, c.most)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(checks))
	}
	_, err := fmt.Fprintf(w, "%d checks passed\n", len(checks))
	return err
}

func (c check) measure() (float64, error) {
	for _, sc := range scenarios() {
		if sc.name == c.scenario {
			return c.measureIn(sc)
		}
	}
	return 0, fmt.Errorf("no scenario %q", c.scenario)
}

func (c check) measureIn(sc scenario) (float64, error) {
	ours, theirs := math.Inf(1), math.Inf(1)
	if c.peer == "" {
		theirs = 1
	}
	for range turns {
		for i, su := range sc.subjects {
			best := &ours
			if i > 0 {
				best = &theirs
			}
			if i > 0 && su.name != c.peer {
				continue
			}
			found, _, err := fork(sc, su, brief)
			if err != nil {
				return 0, err
			}
			*best = min(*best, found.value(c.unit))
		}
	}
	return ours / theirs, nil
}

// brief is the scale of checks.
var brief = scale{
	name:      "brief",
	decisions: 10 * time.Millisecond,
	blocked:   200 * time.Millisecond,
	settle:    50 * time.Millisecond,
	crowd:     1,
}

var scales = map[string]scale{full.name: full, smoke.name: smoke, brief.name: brief}
