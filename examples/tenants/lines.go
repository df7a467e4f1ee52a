package main

import (
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// A result is what became of the calls of one tenant.
type result struct {
	left    int
	refused int
	longest time.Duration // wait of a call that left
}

// enqueue has a call of the tenant wait.
type enqueue func(tenant int, done func(error)) error

// A line is made for the tenants, and lives by the agenda.
type line func([]tenant, *agenda) (enqueue, error)

// byWeight lets each tenant's calls leave as its own limit and the account's allow, and shares
// the account by weight.
func byWeight(all []tenant, a *agenda) (enqueue, error) {
	account, err := newAccount(a)
	if err != nil {
		return nil, err
	}
	keys, err := shaper.NewGroup[int](scheduler.Unlimited, shaper.Under(account),
		shaper.WithBurst(all[0].burst),
		shaper.WithRates(func(i int) scheduler.Rate { return all[i].rate() }),
		shaper.WithWeights(func(i int) int { return all[i].weight }))
	if err != nil {
		return nil, err
	}
	return func(tenant int, done func(error)) error {
		_, err := keys.Enqueue(tenant, shaper.Call{}, done)
		return err
	}, nil
}

// oneLine is the plain way: the calls of all tenants in one line, first come, first out.
func oneLine(_ []tenant, a *agenda) (enqueue, error) {
	account, err := newAccount(a)
	if err != nil {
		return nil, err
	}
	return func(_ int, done func(error)) error {
		_, err := account.Enqueue(shaper.Call{}, done)
		return err
	}, nil
}

func newAccount(a *agenda) (*shaper.Shaper, error) {
	return shaper.New(scheduler.PerSecond(perSecond), shaper.WithQueue(room), shaper.WithClock(a))
}

// send sends the calls, and tells what became of those of each tenant within the time. What
// still waits then is in none of the numbers but asked.
func send(all []tenant, calls []arrival, line line) ([]result, error) {
	a := newAgenda()
	enqueue, err := line(all, a)
	if err != nil {
		return nil, err
	}
	results := make([]result, len(all))
	for _, c := range calls {
		r := &results[c.tenant]
		done := func(err error) {
			if err != nil {
				r.refused++
				return
			}
			r.left++
			r.longest = max(r.longest, a.elapsed()-c.at)
		}
		a.at(c.at, func() {
			if err := enqueue(c.tenant, done); err != nil {
				done(err) // on arrival; the others are told when their time has come
			}
		})
	}
	a.run(length)
	return results, nil
}
