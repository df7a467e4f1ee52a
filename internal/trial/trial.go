// Package trial runs a random test many times, and says how to repeat the run that failed.
//
// These environment variables steer it:
//
//	SLUICE_SEED=n  the seed of all runs, in place of a random one
//	SLUICE_RUN=n   this run alone; the first is 0
//	SLUICE_RUNS=n  how many runs, in place of the test's own number
package trial

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"testing/synctest"
)

// Run calls f with the randomness of one run after another, and stops at the first that
// fails. With -short it makes an eighth of the runs. The line that repeats the failed run
// alone is logged when f fails the test, panics or ends its goroutine; a panic in another
// goroutine, such as one of a synctest bubble, shows the line in the trace as a label.
//
// Nothing that f draws from but rng is repeated.
func Run(t *testing.T, runs int, f func(t *testing.T, rng *rand.Rand)) {
	t.Helper()
	if testing.Short() {
		runs = max(1, runs/8)
	}
	p, err := newPlan(runs, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	p.execute(t, func(rng *rand.Rand) { f(t, rng) })
}

// Bubble is Run with a synctest bubble for each run.
func Bubble(t *testing.T, runs int, f func(t *testing.T, rng *rand.Rand)) {
	t.Helper()
	Run(t, runs, func(t *testing.T, rng *rand.Rand) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) { f(t, rng) })
	})
}

// A reporter is what a plan needs of a testing.T.
type reporter interface {
	Helper()
	Name() string
	Failed() bool
	Skipped() bool
	Logf(format string, args ...any)
}

// execute makes the runs of the plan until one fails.
func (p plan) execute(t reporter, f func(rng *rand.Rand)) {
	t.Helper()
	target := target(t.Name())
	for run := p.first; run < p.end && !t.Failed(); run++ {
		p.once(t, run, fmt.Sprintf("%s=%d %s=%d %s", seedVar, p.seed, runVar, run, target), f)
	}
}

// once makes one run, and logs the line that repeats it unless it ends well.
func (p plan) once(t reporter, run uint64, line string, f func(rng *rand.Rand)) {
	t.Helper()
	defer labelled(line)()
	returned := false
	defer func() {
		t.Helper()
		if t.Failed() || !returned && !t.Skipped() {
			t.Logf("to repeat this run: %s", line)
		}
	}()
	f(rand.New(rand.NewPCG(p.seed, run)))
	returned = true
}
