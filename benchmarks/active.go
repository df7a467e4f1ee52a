package main

import (
	"context"
	"sync/atomic"
	"time"
)

// Active keys: 100,000 of them, at each of which one caller waits all the time for a
// departure each five seconds, so that 20,000 leave per second in all. Figures are those
// of a blocked wait.
//
// To have them leave one after the other from the start, a departure costs a thousand
// units, and each caller first takes some that a full bucket has, one more than the
// caller before it.
func activeScenario() scenario {
	return scenario{
		name:     "ActiveKeys/keys=100000/rate=20000",
		rounds:   otherRounds,
		subjects: []subject{byKey[0], byKey[len(byKey)-1]},
		measure: func(s subject, scale scale) (sample, error) {
			keys := 100_000 / scale.crowd
			k := s.byKey(perSecond(20_000*departureCost/100_000), departureCost, keys)
			return measureActive(k, keys, perSecond(20_000/scale.crowd), scale)
		},
	}
}

const departureCost = 1000

func measureActive(k keyed, keys int, r rate, scale scale) (sample, error) {
	var departed, made atomic.Int64
	before := count().blocked
	gather(keys, func(ctx context.Context) {
		i := int(made.Add(1))
		name := key(i)
		cost := 1 + i%departureCost
		for k.wait(ctx, name, cost) == nil {
			departed.Add(1)
			cost = departureCost
		}
	})
	awaitMost(before, keys)
	time.Sleep(time.Duration(keys) * arriving)
	return measureDepartures(&departed, r, scale)
}
