package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// Cancelling is linear: calls that wait without a goroutine are cancelled one after another, in
// an order of chance. ns/call is what each takes where 100,000 of them wait, and growth that
// divided by what it takes where there are 10,000, in the same process: 10 if the work were
// quadratic. The log of their number, and memory that no cache holds, make it more than 1.
func withdrawScenarios() []scenario {
	var all []scenario
	for _, of := range disciplines {
		all = append(all, scenario{
			name:     "Withdraw/calls=100000/line=" + of.name,
			rounds:   targetRounds,
			subjects: []subject{{name: "sluice"}},
			measure: func(_ subject, scale scale) (sample, error) {
				many := 100_000 / scale.crowd
				const turns = 5
				var nanos, growth []float64
				for range turns {
					few, err := withdrawAll(of.line(many), many/10, 10)
					if err != nil {
						return nil, err
					}
					all, err := withdrawAll(of.line(many), many, 1)
					if err != nil {
						return nil, err
					}
					nanos, growth = append(nanos, all), append(growth, all/few)
				}
				return sample{{"ns/call", median(nanos)}, {"growth", median(growth)}}, nil
			},
		})
	}
	return all
}

// A withdrawer has call i wait and returns what cancels it.
type withdrawer func(i int) (cancel func() bool)

// disciplines are the rules for who is next. With keys, there is one for every tenth call.
var disciplines = []struct {
	name string
	line func(calls int) withdrawer
}{
	{"plain", func(calls int) withdrawer { return ofLine(calls) }},
	{"classes", func(calls int) withdrawer { return ofLine(calls, shaper.WithClasses(4, time.Minute)) }},
	{"keys", func(calls int) withdrawer { return ofKeys(calls) }},
	{"weights", func(calls int) withdrawer {
		return ofKeys(calls, shaper.WithWeights(func(k int) int { return 1 + k%4 }))
	}},
}

func ofLine(calls int, opts ...shaper.Option) withdrawer {
	s := still(calls, opts...)
	return func(i int) (cancel func() bool) { return must(s.Enqueue(shaper.Call{Class: i % 4}, refused)) }
}

func ofKeys(calls int, opts ...shaper.Option) withdrawer {
	g := must(shaper.NewGroup[int](scheduler.PerSecond(1), append(opts, shaper.Under(still(calls)))...))
	return func(i int) (cancel func() bool) { return must(g.Enqueue(i/10, shaper.Call{}, refused)) }
}

// still returns a Shaper whose line stands.
func still(calls int, opts ...shaper.Option) *shaper.Shaper {
	s := must(shaper.New(scheduler.Every(standstill.interval()), append(opts, shaper.WithQueue(2*calls))...))
	s.Allow() // uses up the burst
	return s
}

func refused(err error) {
	panic(fmt.Sprintf("a call that should have been cancelled has an answer: %v", err))
}

// withdrawAll has calls wait and cancels them all, some times over. It returns the ns per call.
func withdrawAll(enqueue withdrawer, calls, times int) (nanos float64, err error) {
	order := rand.New(rand.NewPCG(1, 2)).Perm(calls)
	cancels := make([]func() bool, calls)
	var took time.Duration
	for range times {
		for i := range calls {
			cancels[i] = enqueue(i)
		}
		began := time.Now()
		for _, i := range order {
			if !cancels[i]() {
				return 0, fmt.Errorf("call %d left at a standstill", i)
			}
		}
		took += time.Since(began)
		slices.Reverse(order)
	}
	return float64(took.Nanoseconds()) / float64(times*calls), nil
}
