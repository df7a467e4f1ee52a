package main

import (
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// Fair shares: 10,000 keys under an account, each with two calls that wait all the time without
// a goroutine, 100,000 departures per second in all. Their weights are from 1 to 4. All figures
// are against the same keys without weights, which leave in the order of arrival, in the same
// process: the median of the differences of several turns.
func fairShareScenario() scenario {
	return scenario{
		name:     "FairShare/keys=10000/rate=100000",
		rounds:   targetRounds,
		subjects: []subject{{name: "sluice"}},
		measure: func(_ subject, scale scale) (sample, error) {
			keys := 10_000 / scale.crowd
			r := perSecond(100_000)
			weighted := busyKeys(r, keys, shaper.WithWeights(func(k int) int { return 1 + k%4 }))
			plain := busyKeys(r, keys)
			time.Sleep(scale.settle)
			const turns = 5
			var micros, allocs []float64
			for range turns {
				with, err := weighted.measure(r, scale)
				if err != nil {
					return nil, err
				}
				without, err := plain.measure(r, scale)
				if err != nil {
					return nil, err
				}
				micros = append(micros, with.value("cpu-us/departure")-without.value("cpu-us/departure"))
				allocs = append(allocs, with.value("allocs/departure")-without.value("allocs/departure"))
			}
			return sample{{"added-us/departure", median(micros)}, {"added-allocs/departure", median(allocs)}}, nil
		},
	}
}

// A busyLine is an account whose keys have calls that wait all the time. It is paused unless it
// is measured.
type busyLine struct {
	account  *shaper.Shaper
	departed atomic.Int64
}

func busyKeys(r rate, keys int, opts ...shaper.Option) *busyLine {
	const each = 2
	b := &busyLine{account: must(shaper.New(scheduler.Every(r.interval()), shaper.WithQueue(2*each*keys)))}
	b.account.Pause()
	g := must(shaper.NewGroup[int](scheduler.Unlimited, append(opts, shaper.Under(b.account))...))
	for k := range keys {
		var again *callback
		again = newCallback(func() {
			b.departed.Add(1)
			must(g.Enqueue(k, shaper.Call{}, again.erred))
		})
		for range each {
			must(g.Enqueue(k, shaper.Call{}, again.erred))
		}
	}
	return b
}

func (b *busyLine) measure(r rate, scale scale) (sample, error) {
	b.account.Resume()
	defer b.account.Pause()
	return measureDepartures(&b.departed, r, scale)
}
