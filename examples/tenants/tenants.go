package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// What all tenants share.
const (
	perSecond = 100         // calls, of the account
	room      = 1000        // calls that may wait
	length    = time.Minute // of the simulation
)

// A tenant sends calls of one unit through the account.
type tenant struct {
	plan
	name string
}

// A plan is what some tenants have in common. Rates are in calls a second.
type plan struct {
	name   string
	count  int
	weight int
	limit  int     // of each tenant's own
	burst  int     // of that
	wants  float64 // what each tries to send
}

func plans(noisy float64, burst int) []plan {
	plans := []plan{
		{name: "noisy", count: 1, weight: 1, limit: 60, wants: noisy},
		{name: "gold", count: 4, weight: 8, limit: 20, wants: 9},
		{name: "silver", count: 15, weight: 2, limit: 10, wants: 2},
		{name: "basic", count: 20, weight: 1, limit: 2, wants: .5},
		{name: "eager", count: 10, weight: 1, limit: 2, wants: 3},
	}
	for i := range plans {
		plans[i].burst = burst
	}
	return plans
}

func tenants(plans []plan) (all []tenant) {
	for _, p := range plans {
		for i := range p.count {
			name := p.name
			if p.count > 1 {
				name = fmt.Sprintf("%s %d", p.name, i+1)
			}
			all = append(all, tenant{p, name})
		}
	}
	return all
}

func (p *plan) rate() scheduler.Rate { return scheduler.PerSecond(int64(p.limit)) }

// An arrival is a call that comes.
type arrival struct {
	at     time.Duration
	tenant int
}

// arrivals returns the calls of all, in order. Those of a tenant come at gaps between half and
// one and a half of the mean.
func arrivals(all []tenant, seed uint64) (calls []arrival) {
	random := rand.New(rand.NewPCG(seed, 0))
	for i, t := range all {
		if t.wants == 0 {
			continue
		}
		mean := int64(float64(time.Second) / t.wants)
		at := time.Duration(random.Int64N(mean))
		for at < length {
			calls = append(calls, arrival{at, i})
			at += time.Duration(mean/2 + random.Int64N(mean))
		}
	}
	slices.SortStableFunc(calls, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	return calls
}
