package schedulertest

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// A settled schedule is the one that had known all costs before: after the same departures at
// the same instants, with the true costs, it names the same instants, give or take the
// nanosecond of rounding.
func (c Config) settledIsAsIfKnown(t testing.TB) {
	type departure struct {
		due, left time.Time
		n, actual int64
		settled   bool
		id        uint64
	}
	for i := range uint64(rounds) {
		rng := rand.New(rand.NewPCG(c.Seed+2, i))
		h := history{s: c.New(), now: c.Origin}
		s := h.s.(scheduler.Settler)
		var all []departure
		for range 2 + rng.IntN(20) {
			h.now = h.now.Add(c.gap(rng))
			d := departure{n: c.cost(rng, h.s), id: uint64(len(all) + 1)}
			d.due = h.s.Next(h.now, 0, d.n)
			d.left = d.due
			if rng.IntN(4) == 0 {
				d.left = h.s.Next(d.due.Add(c.gap(rng)), 0, d.n)
			}
			h.now = d.left
			if d.actual = d.n; rng.IntN(3) == 0 {
				h.s.Commit(d.due, d.left, d.n)
				d.settled = true
			} else {
				d.actual = rng.Int64N(c.cost(rng, h.s) + 1)
				s.CommitUnsettled(d.id, d.due, d.left, d.n)
			}
			all = append(all, d)
			for j := range all {
				if d := &all[j]; !d.settled && rng.IntN(3) == 0 {
					c.checkSettle(t, h, d.id, d.actual)
					d.settled = true
				}
			}
			open := 0
			known := c.New()
			h.left = h.left[:0]
			for _, d := range all {
				n := d.actual
				if !d.settled {
					n = d.n
					open++
				}
				known.Commit(d.due, d.left, n)
				if n > 0 {
					h.left = append(h.left, Departure{d.left, n})
				}
			}
			if got := s.Unsettled(); got != open {
				t.Errorf("%d departures are unsettled, want %d", got, open)
			}
			c.checkKnown(t, rng, h, known)
			if t.Failed() {
				return
			}
		}
	}
}

// checkSettle settles a departure, and finds that it cannot be settled again.
func (c Config) checkSettle(t testing.TB, h history, id uint64, actual int64) {
	s := h.s.(scheduler.Settler)
	before := h.s.Next(h.now, 0, 1)
	if s.Settle(id, -1) == nil {
		t.Errorf("Settle takes a cost of -1")
	}
	if got := h.s.Next(h.now, 0, 1); !got.Equal(before) {
		t.Errorf("what Settle refused moves Next by %v", got.Sub(before))
	}
	if err := s.Settle(id, actual); err != nil {
		t.Errorf("Settle: %v", err)
	}
	after := h.s.Next(h.now, 0, 1)
	for _, final := range []uint64{id, id + 1<<40} {
		if err := s.Settle(final, actual+1); !errors.Is(err, scheduler.ErrFinal) {
			t.Errorf("Settle of what is settled, or never left: %v, want ErrFinal", err)
		}
	}
	if got := h.s.Next(h.now, 0, 1); !got.Equal(after) {
		t.Errorf("what Settle refused moves Next by %v", got.Sub(after))
	}
}

// checkKnown compares with a schedule that knows what h has been told, and with the definition.
func (c Config) checkKnown(t testing.TB, rng *rand.Rand, h history, known scheduler.Scheduler) {
	at, ahead, n := h.now.Add(c.gap(rng)), rng.Int64N(4), c.cost(rng, h.s)
	got, want := h.s.Next(at, ahead, n), known.Next(at, ahead, n)
	if d := got.Sub(want); d < -1 || d > 1 {
		t.Errorf("settled, Next(t, %d, %d) lies %v after that of a schedule that knew", ahead, n, d)
	}
	if c.Conforms == nil {
		return
	}
	next := h.s.Next(at, 0, n)
	if !c.Conforms(h.left, next, n) && !c.Conforms(h.left, next.Add(1), n) {
		t.Errorf("settled, %d units may not leave at Next, %v after t", n, next.Sub(at))
	}
	if wait := next.Sub(at); wait > 2 && c.Conforms(h.left, next.Add(-2), n) {
		t.Errorf("settled, %d units may leave before Next", n)
	}
}
