package main

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A decision is an Allow that says yes, or a Wait that need not wait (ReadyWait).
// Goroutines share one limiter and decide as fast as they can. ns/op is the time of all
// decisions on the clock divided by their number, as in a parallel benchmark of package
// testing; allocs/op is rounded down, as there.
func decisionScenarios() []scenario {
	var all []scenario
	for _, op := range decisions {
		for _, goroutines := range contention {
			all = append(all, scenario{
				name:     fmt.Sprintf("%s/goroutines=%d", op.name, goroutines),
				subjects: choose(subjects, op.can),
				measure: func(s subject, scale scale) (sample, error) {
					return measureDecision(op.of(s.ready()), goroutines, scale.decisions)
				},
			})
		}
	}
	return all
}

// A decision is of a kind: of makes a function of a limiter that decides once and reports
// whether the answer was yes.
type decision struct {
	name string
	can  func(subject) bool
	of   func(limiter) func() bool
}

var decisions = []decision{
	{"Allow", canAllow, func(l limiter) func() bool { return l.allow }},
	{"ReadyWait", canWait, func(l limiter) func() bool {
		return func() bool { return l.wait(live) == nil }
	}},
}

// contention is how many goroutines decide at the same limiter.
var contention = []int{1, 2, 16, 256}

// live is a context that could end, as that of a request, but does not.
var live, _ = context.WithCancel(context.Background())

// measureDecision finds out how many decisions take about d and times that many.
func measureDecision(op func() bool, goroutines int, d time.Duration) (sample, error) {
	ops := slices.Repeat([]func() bool{op}, goroutines)
	n := 1000
	for {
		elapsed, allocs, yes := decide(ops, n)
		if yes != n {
			return nil, fmt.Errorf("%d of %d decisions were a no", n-yes, n)
		}
		if elapsed >= d*3/4 {
			return sample{
				{"ns/op", float64(elapsed.Nanoseconds()) / float64(n)},
				{"allocs/op", float64(allocs / uint64(n))},
			}, nil
		}
		more := min(100, max(2, float64(d)/float64(elapsed)))
		n = int(min(more*float64(n), math.MaxInt32)) // an int may have 32 bits
	}
}

// decide makes n decisions in all, in a goroutine for each op, and returns how long they
// took, what was allocated meanwhile and how many were a yes.
func decide(ops []func() bool, n int) (elapsed time.Duration, allocs uint64, yes int) {
	var wg sync.WaitGroup
	var total atomic.Int64
	start := make(chan struct{})
	for i, op := range ops {
		share := (n + i) / len(ops) // the shares add up to n
		wg.Go(func() {
			<-start
			mine := 0
			for range share {
				if op() {
					mine++
				}
			}
			total.Add(int64(mine))
		})
	}
	before := mallocs()
	began := time.Now()
	close(start)
	wg.Wait()
	return time.Since(began), mallocs() - before, int(total.Load())
}

// mallocs returns how many objects the process has allocated so far.
func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
