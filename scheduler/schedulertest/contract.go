package schedulertest

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

func (c Config) nextIsNotBeforeT(t testing.TB) {
	c.histories(func(rng *rand.Rand, h, _ history) {
		ahead, n := rng.Int64N(20), c.cost(rng, h.s)
		if got := h.s.Next(h.now, ahead, n); got.Before(h.now) {
			t.Errorf("Next(t, %d, %d) is %v before t", ahead, n, h.now.Sub(got))
		}
	})
}

func (c Config) nextChangesNothing(t testing.TB) {
	c.histories(func(rng *rand.Rand, asked, twin history) {
		for range 10 {
			at := asked.now.Add(time.Duration(rng.Int64N(int64(100*c.Step))) - 50*c.Step)
			asked.s.Next(at, rng.Int64N(50), c.cost(rng, asked.s))
		}
		for range 10 {
			n := c.cost(rng, asked.s)
			asked.leave(n)
			twin.leave(n)
			if !asked.now.Equal(twin.now) {
				t.Errorf("after other questions %d units leave at %v instead of %v",
					n, asked.now.Sub(c.Origin), twin.now.Sub(c.Origin))
				return
			}
		}
	})
}

func (c Config) nextIsTheEarliest(t testing.TB) {
	c.histories(func(rng *rand.Rand, h, _ history) {
		n := c.cost(rng, h.s)
		next := h.s.Next(h.now, 0, n)
		if again := h.s.Next(next, 0, n); !again.Equal(next) {
			t.Errorf("Next names an instant at which %d units may not leave: they may %v later", n, again.Sub(next))
		}
		wait := next.Sub(h.now)
		if wait <= 0 {
			return
		}
		for _, early := range within(rng, wait) {
			if again := h.s.Next(next.Add(-early), 0, n); !again.Equal(next) {
				t.Errorf("%d units may leave %v before Next", n, next.Sub(again))
			}
		}
	})
}

func (c Config) nextIsWhatTheDefinitionAllows(t testing.TB) {
	held := 0
	c.histories(func(rng *rand.Rand, h, _ history) {
		for range 5 {
			n := c.cost(rng, h.s)
			next := h.s.Next(h.now, 0, n)
			if !c.Conforms(h.left, next, n) {
				t.Errorf("%d units may not leave at Next, %v after t", n, next.Sub(h.now))
			}
			if wait := next.Sub(h.now); wait > 0 {
				held++
				c.checkLater(t, rng, h, next, n)
				for _, early := range within(rng, wait) {
					if c.Conforms(h.left, next.Add(-early), n) {
						t.Errorf("%d units may leave %v before Next", n, early)
					}
				}
			}
			if t.Failed() {
				return
			}
			h.leave(n)
		}
	})
	if held == 0 {
		t.Errorf("no call ever had to wait: is Step, %v, too long?", c.Step)
	}
}

// within returns times from 1 ns up to a wait, both of these and some between.
func within(rng *rand.Rand, wait time.Duration) []time.Duration {
	times := []time.Duration{1, wait}
	for range 5 {
		times = append(times, 1+time.Duration(rng.Int64N(int64(wait))))
	}
	return times
}

// checkLater compares with the definition at an instant after Next: what may leave at one
// need not at the other.
func (c Config) checkLater(t testing.TB, rng *rand.Rand, h history, next time.Time, n int64) {
	at := next.Add(c.gap(rng))
	again := h.s.Next(at, 0, n)
	if allowed := again.Equal(at); allowed != c.Conforms(h.left, at, n) {
		t.Errorf("%v after Next the definition allows %d units: %v, and Next: %v", at.Sub(next), n, !allowed, allowed)
	}
	if !c.Conforms(h.left, again, n) {
		t.Errorf("%v after Next %d units may not leave", again.Sub(next), n)
	}
}

func (c Config) nextAheadMatchesDepartures(t testing.TB) {
	c.histories(func(rng *rand.Rand, h, _ history) {
		ahead, n := rng.Int64N(20), c.cost(rng, h.s)
		predicted := h.s.Next(h.now, ahead, n)
		for range ahead {
			h.leave(1)
		}
		real := h.s.Next(h.now, 0, n)
		switch {
		case predicted.After(real):
			t.Errorf("Next(t, %d, %d) is %v later than what comes out", ahead, n, predicted.Sub(real))
		case c.ExactAhead && predicted.Before(real):
			t.Errorf("Next(t, %d, %d) is %v earlier than what comes out", ahead, n, real.Sub(predicted))
		}
	})
}

func (c Config) nextIsMonotone(t testing.TB) {
	c.histories(func(rng *rand.Rand, h, _ history) {
		ahead, n := rng.Int64N(20), c.cost(rng, h.s)
		next := h.s.Next(h.now, ahead, n)
		if got := h.s.Next(h.now.Add(c.gap(rng)), ahead, n); got.Before(next) {
			t.Errorf("a later t gives an earlier Next, by %v", next.Sub(got))
		}
		if got := h.s.Next(h.now, ahead+1, n); got.Before(next) {
			t.Errorf("more units ahead give an earlier Next, by %v", next.Sub(got))
		}
		if got := h.s.Next(h.now, ahead, min(n+1, h.s.MaxCost())); got.Before(next) {
			t.Errorf("a higher cost gives an earlier Next, by %v", next.Sub(got))
		}
	})
}

func (c Config) departuresMakeNothingEarlier(t testing.TB) {
	c.histories(func(rng *rand.Rand, h, twin history) {
		h.leave(c.cost(rng, h.s))
		at, ahead, n := h.now.Add(c.gap(rng)), rng.Int64N(3), c.cost(rng, h.s)
		// Rounding may make it 1 ns.
		if got, want := h.s.Next(at, ahead, n), twin.s.Next(at, ahead, n); got.Add(1).Before(want) {
			t.Errorf("after a departure %d units may leave %v earlier than without", n, want.Sub(got))
		}
	})
}

// greedyReleaseEqualsBruteForce steps through a grid of instants and asks the
// meter at each: the first that it allows is the one to which asking Next leads.
func (c Config) greedyReleaseEqualsBruteForce(t testing.TB) {
	grid := max(c.Step/16, 1)
	c.histories(func(rng *rand.Rand, paced, metered history) {
		paced.now = paced.now.Truncate(grid).Add(grid)
		metered.now = paced.now
		for range 5 {
			n := c.cost(rng, paced.s)
			for next := paced.s.Next(paced.now, 0, n); next.After(paced.now); next = paced.s.Next(paced.now, 0, n) {
				// At the instant of the grid that comes next it may be closed again.
				paced.now = paced.now.Add((next.Sub(paced.now) + grid - 1) / grid * grid)
			}
			paced.s.Commit(paced.now, paced.now, n)

			for !metered.now.After(paced.now) {
				if ok, _ := scheduler.Allow(metered.s, metered.now, n); ok {
					break
				}
				metered.now = metered.now.Add(grid)
			}
			if !metered.now.Equal(paced.now) {
				t.Errorf("%d units leave at %v by Next and at %v by trying", n,
					paced.now.Sub(c.Origin), metered.now.Sub(c.Origin))
				return
			}
		}
	})
}

func (c Config) staleTimeMintsNothing(t testing.TB) {
	c.histories(func(rng *rand.Rand, stale, twin history) {
		stale.leave(1)
		twin.leave(1)
		for range 20 {
			n := c.cost(rng, stale.s)
			now := twin.now.Add(c.gap(rng))
			back := now.Add(-time.Duration(rng.Int64N(int64(100 * c.Step))))
			due := stale.s.Next(back, 0, n)
			want := twin.s.Next(later(back, twin.now), 0, n)
			if due.Before(want) {
				t.Errorf("a t that lies %v back lets %d units leave %v early", now.Sub(back), n, want.Sub(due))
				return
			}
			stale.s.Commit(want, want, n)
			twin.s.Commit(want, want, n)
			twin.now = want
			if rng.IntN(4) == 0 {
				// So does a departure that is reported with such a reading.
				stale.s.Commit(back, back, n)
				twin.s.Commit(want, want, n)
			}
		}
	})
}

func (c Config) extremesNeverWrap(t testing.TB) {
	extremes := []int64{math.MinInt64, -1, 0, 1, 2, 1 << 31, 1 << 62, math.MaxInt64}
	check := func(h history) {
		t.Helper()
		for _, fixed := range extremes {
			// A wait that wrapped around would come out as a shorter one.
			byAhead, byCost := h.now, h.now
			for _, n := range extremes {
				next := h.s.Next(h.now, n, fixed)
				if next.Before(byAhead) {
					t.Errorf("Next(t, %d, %d) lies %v before that for less ahead", n, fixed, byAhead.Sub(next))
				}
				byAhead = next

				next = h.s.Next(h.now, fixed, n)
				if next.Before(byCost) {
					t.Errorf("Next(t, %d, %d) lies %v before that for a lower cost", fixed, n, byCost.Sub(next))
				}
				byCost = next
			}
		}
	}
	c.histories(func(rng *rand.Rand, h, _ history) {
		check(h)
		n := min(extremes[3+rng.IntN(len(extremes)-3)], h.s.MaxCost())
		for range 3 {
			h.s.Commit(h.now, h.now, n)
			check(h)
		}
	})
}

func (c Config) maxCostIsHonest(t testing.TB) {
	s := c.New()
	most := s.MaxCost()
	if most < 1 {
		t.Fatalf("MaxCost is %d", most)
	}
	const never = time.Duration(math.MaxInt64)
	if wait := s.Next(c.Origin, 0, most).Sub(c.Origin); wait == never {
		t.Errorf("a cost of MaxCost, %d, never leaves", most)
	}
	if most < math.MaxInt64 {
		if wait := s.Next(c.Origin, 0, most+1).Sub(c.Origin); wait != never {
			t.Errorf("a cost above MaxCost, %d, leaves after %v", most+1, wait)
		}
	}
}
