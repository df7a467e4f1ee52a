package schedulertest

import (
	"math/rand/v2"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// rounds is the number of random histories for each property.
const rounds = 100

// A history is a schedule after a random past, and the instant it has reached.
type history struct {
	s    scheduler.Scheduler
	now  time.Time
	left []Departure
}

// histories calls f with random pasts. Equal seeds give equal pasts, so a property
// that needs two equal schedules asks for two.
func (c Config) histories(f func(rng *rand.Rand, a, b history)) {
	for i := range uint64(rounds) {
		past := func() history {
			return c.past(rand.New(rand.NewPCG(c.Seed, i)))
		}
		f(rand.New(rand.NewPCG(c.Seed+1, i)), past(), past())
	}
}

func (c Config) past(rng *rand.Rand) history { return c.pastOf(c.New(), rng) }

func (c Config) pastOf(s scheduler.Scheduler, rng *rand.Rand) history {
	h := history{s: s, now: c.Origin}
	for range rng.IntN(30) {
		h.now = h.now.Add(c.gap(rng))
		var late time.Duration
		if rng.IntN(4) == 0 {
			late = c.gap(rng)
		}
		h.leaveLate(c.cost(rng, h.s), late)
	}
	if rng.IntN(2) == 0 {
		h.now = h.now.Add(c.gap(rng))
	}
	return h
}

// leave lets n units leave at the earliest instant and moves on to it.
func (h *history) leave(n int64) { h.leaveLate(n, 0) }

// leaveLate lets n units leave later than they could, as a late timer does. They ask
// again then, as the schedule may be closed.
func (h *history) leaveLate(n int64, late time.Duration) {
	due := h.s.Next(h.now, 0, n)
	h.now = h.s.Next(due.Add(late), 0, n)
	h.s.Commit(due, h.now, n)
	h.left = append(h.left, Departure{h.now, n})
}

func (c Config) gap(rng *rand.Rand) time.Duration {
	switch rng.IntN(10) {
	case 0:
		return time.Duration(rng.Int64N(int64(40*c.Step) + 1)) // an idle spell
	case 1, 2, 3:
		return 0
	default:
		return time.Duration(rng.Int64N(int64(2*c.Step) + 1))
	}
}

func (c Config) cost(rng *rand.Rand, s scheduler.Scheduler) int64 {
	return 1 + rng.Int64N(min(5, s.MaxCost()))
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
