package main

import (
	"context"
	"fmt"
	"runtime"
)

// Waiting calls: what each costs in memory while it waits. bytes/call is the heap in use
// after a collection plus the stacks, of which stack-bytes/call are the stacks alone;
// allocs/call are those of getting it to wait, the goroutine's included. Then as many
// goroutines again block in a bare select on the same context, which is the least that
// waiting can cost: floor-bytes/call of the heap. What the calls have beyond that is
// beyond-bytes/call, of the heap too.
func waitingScenarios() []scenario {
	var all []scenario
	for _, w := range []struct{ calls, rounds int }{
		{100, targetRounds}, {10_000, targetRounds}, {100_000, otherRounds},
	} {
		all = append(all, scenario{
			name:     fmt.Sprintf("Waiting/calls=%d", w.calls),
			rounds:   w.rounds,
			subjects: pacers(w.rounds),
			measure: func(s subject, scale scale) (sample, error) {
				calls := w.calls / scale.crowd
				return measureWaiting(s.pace(standstill, calls), calls)
			},
		})
	}
	return all
}

func measureWaiting(l limiter, calls int) (sample, error) {
	if err := l.wait(context.Background()); err != nil { // uses up the burst
		return nil, err
	}
	w, err := weigh(calls, l.wait)
	if err != nil {
		return nil, err
	}
	floor, err := weigh(calls, selectOn)
	if err != nil {
		return nil, err
	}
	return sample{
		{"bytes/call", w.heap + w.stack},
		{"stack-bytes/call", w.stack},
		{"beyond-bytes/call", w.heap - floor.heap},
		{"floor-bytes/call", floor.heap},
		{"allocs/call", w.allocs},
		{"beyond-allocs/call", w.allocs - floor.allocs},
	}, nil
}

// weight is what one waiting call takes.
type weight struct{ heap, stack, allocs float64 }

// weigh has n goroutines block in wait, and leaves them so. Nothing else is on their
// stacks, and they come one after the other, so that a stack grows for what the library
// needs, not for its caller or for waiting at a lock.
func weigh(n int, wait func(context.Context) error) (weight, error) {
	already := count().blocked
	before := settled()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for range n {
		go wait(live)
	}
	if !awaitBlocked(already, n) {
		return weight{}, fmt.Errorf("%d of %d calls wait", count().blocked-already, n)
	}
	objects := mallocs() - before.Mallocs
	after := settled()
	each := func(after, before uint64) float64 { return (float64(after) - float64(before)) / float64(n) }
	return weight{
		heap:   each(after.HeapAlloc, before.HeapAlloc),
		stack:  each(after.StackInuse, before.StackInuse),
		allocs: float64(objects) / float64(n),
	}, nil
}

// settled returns the memory in use after a collection.
func settled() runtime.MemStats {
	runtime.GC()
	runtime.GC() // sweeps what the first one found
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m
}
