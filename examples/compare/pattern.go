package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// An arrival is a call that wants to leave.
type arrival struct {
	at   time.Duration
	cost int64
}

// A pattern makes calls that put the limits to the test, in order.
type pattern struct {
	name  string
	about string
	calls func(l limits, seed uint64) []arrival
}

var patterns = []pattern{
	{"burst", "half as much again as the limit, all at once", burst},
	{"trace", "15 at 0s, 4 at 1s, 1 at 2s", trace},
	{"boundary", "the limit just before a boundary of the windows, and again just after it", boundary},
	{"overload", "steadily, at one and a half times the rate", overload},
	{"costs", "costs from 1 to 5, at random times, on average at one and a half times the rate", costs},
}

func patternNames() []string {
	names := make([]string, len(patterns))
	for i, p := range patterns {
		names[i] = p.name
	}
	return names
}

func findPattern(name string) (pattern, error) {
	for _, p := range patterns {
		if p.name == name {
			return p, nil
		}
	}
	return pattern{}, fmt.Errorf("%q: must be one of %s", name, strings.Join(patternNames(), ", "))
}

func burst(l limits, _ uint64) []arrival {
	return together(nil, 0, l.limit+l.limit/2)
}

// trace is the example that the buckets are explained by. With the default limits
// they admit 10, 2 and 1 of these.
func trace(limits, uint64) []arrival {
	calls := together(nil, 0, 15)
	calls = together(calls, time.Second, 4)
	return together(calls, 2*time.Second, 1)
}

func together(calls []arrival, at time.Duration, n int64) []arrival {
	for range n {
		calls = append(calls, arrival{at, 1})
	}
	return calls
}

// boundary is what a caller does that knows when the windows begin. Either quota
// comes within a twentieth of a window.
func boundary(l limits, _ uint64) []arrival {
	calls := make([]arrival, 2*l.limit)
	for i := range calls {
		fromBoundary := mulDiv(int64(i)-l.limit, int64(l.window), 20*l.limit)
		calls[i] = arrival{l.window + time.Duration(fromBoundary), 1}
	}
	return calls
}

// overload goes on for four windows.
func overload(l limits, _ uint64) []arrival {
	calls := make([]arrival, 6*l.limit)
	for i := range calls {
		calls[i] = arrival{time.Duration(mulDiv(int64(l.window), int64(2*i), 3*l.limit)), 1}
	}
	return calls
}

// costs goes on for about four windows. A call costs 3 on average, so one comes in
// the time of two units.
func costs(l limits, seed uint64) []arrival {
	random := rand.New(rand.NewPCG(seed, 0))
	mean := 2 * l.window / time.Duration(l.limit)
	calls := make([]arrival, 2*l.limit)
	var at time.Duration
	for i := range calls {
		calls[i] = arrival{at, 1 + random.Int64N(5)}
		at += time.Duration(random.Int64N(int64(2*mean) + 1))
	}
	return calls
}
