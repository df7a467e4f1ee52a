package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A target is a bound on one figure that sluice is to reach.
type target struct {
	what     string
	scenario string
	unit     string
	peer     string // compared with; empty: the figure itself counts
	kind     kind
	bound    float64
}

// A kind says what is compared with the bound, and how.
type kind struct {
	name  string // of what is compared
	value func(ours, ratio float64) float64
	sign  string
	met   func(value, bound float64) bool
}

func atLeast(value, bound float64) bool { return value >= bound }
func atMost(value, bound float64) bool  { return value <= bound }
func below(value, bound float64) bool   { return value < bound }

// own is the figure of ours, share is ours / the peer's, and gain the peer's / ours: how
// many times as fast, or as exact.
func own(ours, _ float64) float64    { return ours }
func share(_, ratio float64) float64 { return ratio }
func gain(_, ratio float64) float64  { return 1 / ratio }

var (
	ownAtLeast   = kind{"", own, "≥", atLeast}
	ownAtMost    = kind{"", own, "≤", atMost}
	ownBelow     = kind{"", own, "<", below}
	shareAtMost  = kind{"ours / %s", share, "≤", atMost}
	shareBelow   = kind{"ours / %s", share, "<", below}
	timesAtLeast = kind{"%s / ours", gain, "≥", atLeast}
)

const (
	// nearlyNone allows for what the runtime allocates meanwhile.
	nearlyNone = 0.05
	// linear allows the cost of one of ten times as many to grow by the log of their number and
	// by memory that no cache holds. What is quadratic has 10.
	linear = 3
)

var targets = []target{
	{"ready Wait", "ReadyWait/goroutines=1", "ns/op", "xtime", timesAtLeast, 2.5},
	{"ready Wait", "ReadyWait/goroutines=1", "ns/op", "uber", timesAtLeast, 1.5},
	{"ready Wait", "ReadyWait/goroutines=1", "ns/op", "failsafe-try", timesAtLeast, 1.3},
	{"ready Wait", "ReadyWait/goroutines=16", "ns/op", "xtime", timesAtLeast, 3},
	{"ready Wait", "ReadyWait/goroutines=16", "ns/op", "uber", timesAtLeast, 1},
	{"ready Wait", "ReadyWait/goroutines=256", "ns/op", "xtime", timesAtLeast, 3},
	{"ready Wait", "ReadyWait/goroutines=256", "ns/op", "uber", timesAtLeast, 1},
	{"ready Wait", "ReadyWait/goroutines=1", "allocs/op", "", ownAtMost, 0},
	{"ready Wait", "ReadyWait/goroutines=16", "allocs/op", "", ownAtMost, 0},
	{"ready Wait", "ReadyWait/goroutines=256", "allocs/op", "", ownAtMost, 0},

	{"blocked", "Blocked/rate=10000/callers=10000", "allocs/departure", "", ownAtMost, nearlyNone},
	{"blocked", "Blocked/rate=10000/callers=10000", "cpu-us/departure", "xtime", shareAtMost, 0.9},
	{"blocked", "Blocked/rate=1000/callers=64", "allocs/departure", "", ownAtMost, nearlyNone},
	{"blocked", "Blocked/rate=1000/callers=64", "cpu-us/departure", "xtime", shareAtMost, 1.05},
	{"blocked, beyond a bare select", "Waiting/calls=10000", "beyond-bytes/call", "xtime", shareAtMost, 0.6},
	{"blocked, alone", "Blocked/rate=10000/callers=1", "share-of-rate", "", ownAtLeast, 0.99},
	{"blocked", "Blocked/rate=100000/callers=64", "share-of-rate", "", ownAtLeast, 0.99},

	{"without a goroutine", "Enqueue/rate=10000/calls=10000", "cpu-us/departure", "xtime-afterfunc", shareAtMost, 0.8},
	{"without a goroutine", "Enqueue/rate=10000/calls=10000", "cpu-us/departure", "xtime-wait", shareAtMost, 0.6},
	{"without a goroutine", "Enqueue/rate=100000/calls=10000", "cpu-us/departure", "xtime-afterfunc", shareAtMost, 0.4},
	{"without a goroutine", "Enqueue/rate=100000/calls=10000", "cpu-us/departure", "xtime-wait", shareAtMost, 0.25},
	{"waiting call without a goroutine", "Enqueued/calls=10000", "bytes/call", "", ownAtMost, 160},

	{"cancelling", "Cancel/calls=100000", "wall-ms", "xtime", shareBelow, 1},
	{"rate change, which reaches no waiting call with x/time", "RateChange/calls=10000", "set-us", "xtime", shareBelow, 1},

	{"idle key", "Keys/keys=1000000", "bytes/key", "", ownAtMost, 100},
	{"decision by key", "Keys/keys=1000000", "ns/op@1", "xtime-shards", timesAtLeast, 1.7},
	{"decision by key", "Keys/keys=1000000", "ns/op@2", "xtime-shards", timesAtLeast, 1.7},
	{"decision by key", "Keys/keys=1000000", "ns/op@16", "xtime-shards", timesAtLeast, 1.7},

	{"key under an account, and its waiting call", "Under/keys=1000000", "bytes/key", "", ownAtMost, 320},
	{"keys under an account", "Under/keys=1000000", "departures/s", "", ownAtLeast, 200_000},
	{"what weights add", "FairShare/keys=10000/rate=100000", "added-us/departure", "", ownAtMost, 0.3},
	{"what weights add", "FairShare/keys=10000/rate=100000", "added-allocs/departure", "", ownAtMost, nearlyNone},
	{"cancelling, 100,000 beside 10,000", "Withdraw/calls=100000/line=plain", "growth", "", ownAtMost, linear},
	{"cancelling, 100,000 beside 10,000", "Withdraw/calls=100000/line=classes", "growth", "", ownAtMost, linear},
	{"cancelling, 100,000 beside 10,000", "Withdraw/calls=100000/line=keys", "growth", "", ownAtMost, linear},
	{"cancelling, 100,000 beside 10,000", "Withdraw/calls=100000/line=weights", "growth", "", ownAtMost, linear},

	{"transport", "Transport/base=stub", "added-allocs/request", "", ownAtMost, 0},
	{"transport", "Transport/base=stub", "added-ns/request", "", ownBelow, 50},

	{"precise", "Precise/rate=1000", "gap-error-p50-us", "xtime", timesAtLeast, 10},
	{"precise", "Precise/rate=5000", "gap-error-p50-us", "xtime", timesAtLeast, 30},
	{"precise", "Precise/rate=1000", "gap-error-p99-us", "xtime", timesAtLeast, 4},
	{"precise", "Precise/rate=5000", "gap-error-p99-us", "xtime", timesAtLeast, 10},
	{"precise", "Precise/rate=1000", "late-p99-us", "xtime", timesAtLeast, 8},
	{"precise", "Precise/rate=5000", "late-p99-us", "xtime", timesAtLeast, 8},
	{"precise", "Precise/rate=10", "cpu-us/departure", "xtime", shareAtMost, 1.5},
	{"precise", "Precise/rate=100", "cpu-us/departure", "xtime", shareAtMost, 1.5},
	{"precise", "Precise/rate=1000", "cpu-us/departure", "xtime", shareAtMost, 1.5},
	{"precise", "Precise/rate=20000", "share-of-rate", "", ownAtLeast, 0.999},
	{"precise", "Precise/rate=20000", "late-p99-us", "", ownBelow, 1000},

	{"shared, of 10,000 calls/s", "Redis/crowded", "calls/s", "", ownAtLeast, 9_900},
	{"shared, of 10,000 calls/s", "Redis/crowded", "steps/s", "", ownAtMost, 200},
}

const targetLegend = `
Computed from the medians below. Where a peer is named, the figure is a ratio to it: ours
/ peer of what should be small, and peer / ours where ours is to be that many times as
fast, or as exact. A target that cannot be computed is not met.

| | scenario | figure | target | reached | met | rounds |
|---|---|---|---|---|---|---|
`

// writeTargets writes the targets about the scenarios that were measured.
func (r *report) writeTargets(b *strings.Builder) {
	b.WriteString("\n## Targets\n" + targetLegend)
	for _, t := range targets {
		for i := range r.results {
			if res := &r.results[i]; res.scenario.name == t.scenario {
				b.WriteString(t.row(res))
			}
		}
	}
}

func (t target) row(r *result) string {
	value, met := t.reached(r), "**no**"
	if t.kind.met(value, t.bound) {
		met = "yes"
	}
	figure := t.unit
	if t.peer != "" {
		figure += ", " + fmt.Sprintf(t.kind.name, t.peer)
	}
	return fmt.Sprintf("| %s | %s | %s | %s %s | %s | %s | %d |\n",
		t.what, t.scenario, figure, t.kind.sign, strconv.FormatFloat(t.bound, 'f', -1, 64), number(value), met, len(r.rounds))
}

// reached returns what is compared with the bound; NaN if it cannot be computed.
func (t target) reached(r *result) float64 {
	ratio := math.NaN()
	for i, s := range r.scenario.subjects {
		if s.name == t.peer {
			ratio = r.ratio(i, t.unit)
		}
	}
	return t.kind.value(r.value(0, t.unit), ratio)
}
