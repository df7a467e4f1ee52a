package main

import (
	"context"
	"fmt"
	"runtime"
)

// Waiting calls: what each costs in memory while it waits. bytes/call is the heap in use
// after a collection plus the stacks, the goroutine included; allocs/call are those of
// getting it to wait, the goroutine's included. Then as many goroutines again block in a
// bare select on the same context, which is the least that waiting can cost:
// floor-bytes/call. What is beyond is the difference.
func waitingScenarios() []scenario {
	var all []scenario
	for _, calls := range []int{100, 10_000, 100_000} {
		all = append(all, scenario{
			name:     fmt.Sprintf("Waiting/calls=%d", calls),
			slow:     true,
			subjects: choose(subjects, canPace),
			measure: func(s subject, scale scale) (sample, error) {
				calls := calls / scale.crowd
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
	bytes, allocs, err := weigh(calls, func(ctx context.Context) { _ = l.wait(ctx) })
	if err != nil {
		return nil, err
	}
	floor, floorAllocs, err := weigh(calls, func(ctx context.Context) { _ = selectOn(ctx) })
	if err != nil {
		return nil, err
	}
	return sample{
		{"bytes/call", bytes},
		{"beyond-bytes/call", bytes - floor},
		{"floor-bytes/call", floor},
		{"allocs/call", allocs},
		{"beyond-allocs/call", allocs - floorAllocs},
	}, nil
}

// weigh returns the memory and the allocations of each of n goroutines that block in f.
// They stay blocked.
func weigh(n int, f func(context.Context)) (bytes, allocs float64, err error) {
	already := count().blocked
	before := settled()
	gather(n, f)
	if !awaitBlocked(already, n) {
		return 0, 0, fmt.Errorf("%d of %d calls wait", count().blocked-already, n)
	}
	objects := mallocs() - before.Mallocs
	after := settled()
	held := func(m runtime.MemStats) float64 { return float64(m.HeapAlloc + m.StackInuse) }
	return (held(after) - held(before)) / float64(n), float64(objects) / float64(n), nil
}

// settled returns the memory in use after a collection.
func settled() runtime.MemStats {
	runtime.GC()
	runtime.GC() // sweeps what the first one found
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m
}
