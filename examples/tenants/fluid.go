package main

import (
	"math"
	"time"
)

// A fluid is an ideal sharing: one that serves all tenants at once, as if calls were a fluid.
// At each instant the account's rate is shared in proportion to the weights of the tenants that
// have something left to send. A tenant takes no more than its own limit, and what it does not
// take goes to the others.
//
// It knows nothing of the line, and has no room that could be full.
type fluid struct {
	tenants []tenant
	backlog []float64 // of each, in calls
	saved   []float64 // what each may take beyond its own limit's rate
	served  []float64
}

// ideal returns how many calls of each tenant the fluid serves.
func ideal(all []tenant, calls []arrival) []float64 {
	n := len(all)
	f := fluid{all, make([]float64, n), make([]float64, n), make([]float64, n)}
	for i, t := range all {
		f.saved[i] = t.most()
	}
	now := 0.
	for _, c := range calls {
		f.flow(c.at.Seconds() - now)
		now = c.at.Seconds()
		f.backlog[c.tenant]++
	}
	f.flow(length.Seconds() - now)
	return f.served
}

// most returns how much a tenant may save up: a burst of 1 is none, as each call is whole.
func (t *tenant) most() float64 { return float64(t.burst - 1) }

// tiny is what rounding may leave over, of a call and of a second.
const tiny = float64(time.Nanosecond) / float64(time.Second)

// flow serves for so many seconds, in steps in which the rates are the same.
func (f *fluid) flow(seconds float64) {
	for seconds > tiny {
		rates := f.rates()
		step := seconds
		for i, rate := range rates {
			limit := float64(f.tenants[i].limit)
			switch {
			case rate > limit:
				step = min(step, f.backlog[i]/rate, f.saved[i]/(rate-limit))
			case rate > 0:
				step = min(step, f.backlog[i]/rate)
			}
		}
		for i, rate := range rates {
			t := &f.tenants[i]
			f.served[i] += rate * step
			f.backlog[i] = none(f.backlog[i] - rate*step)
			f.saved[i] = min(none(f.saved[i]+(float64(t.limit)-rate)*step), t.most())
		}
		seconds -= step
	}
}

func none(x float64) float64 {
	if x < tiny {
		return 0
	}
	return x
}

// rates returns how fast each tenant is served. It raises the level, the rate for a weight of
// 1, until the account's rate is used up; a tenant that has reached its own limit stays there.
func (f *fluid) rates() []float64 {
	rates := make([]float64, len(f.tenants))
	rest := float64(perSecond)
	for {
		weights, level := 0., math.Inf(1) // level: where the next tenant reaches its limit
		for i := range rates {
			if f.wants(i, rates) {
				weights += float64(f.tenants[i].weight)
				level = min(level, f.mark(i))
			}
		}
		if weights == 0 {
			return rates
		}
		last := rest/weights <= level
		level = min(level, rest/weights)
		for i := range rates {
			if f.wants(i, rates) && (last || f.mark(i) <= level) {
				rates[i] = level * float64(f.tenants[i].weight)
				rest -= rates[i]
			}
		}
		if last {
			return rates
		}
	}
}

// wants reports whether a tenant has something to send and no rate yet.
func (f *fluid) wants(i int, rates []float64) bool { return f.backlog[i] > 0 && rates[i] == 0 }

// mark returns the level at which a tenant reaches its own limit.
func (f *fluid) mark(i int) float64 {
	if f.saved[i] > 0 {
		return math.Inf(1)
	}
	return float64(f.tenants[i].limit) / float64(f.tenants[i].weight)
}
