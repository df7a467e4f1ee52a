// Package schedulertest is the conformance suite for implementations of
// [scheduler.Scheduler]. Whoever adds a schedule runs it through [Run]:
//
//	func TestConformance(t *testing.T) {
//		schedulertest.Run(t, schedulertest.Config{
//			New:      func() scheduler.Scheduler { return must(NewMine(10, time.Second)) },
//			Step:     100 * time.Millisecond,
//			Conforms: myLimitAsPartnersTellIt,
//		})
//	}
package schedulertest

import (
	"bytes"
	"encoding"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// Config describes the schedule under test.
type Config struct {
	// New returns a fresh schedule. Every call must return an equal one.
	New func() scheduler.Scheduler

	// Conforms is the definition of the limit, told as plainly as it can be: may n
	// units leave at an instant, after all those that left? It must share no code
	// with the schedule, and may be slow. Without it the suite only finds out
	// whether a schedule agrees with itself; leave it out where the definition has
	// no whole nanoseconds.
	Conforms func(left []Departure, at time.Time, n int64) bool

	// Step is the time in which the schedule lets about one unit leave. Random
	// arrivals are spread around it.
	Step time.Duration

	// ExactAhead says that Next with ahead > 0 is exact for units that leave one
	// by one. Otherwise it has to be a lower bound.
	ExactAhead bool

	// Origin is the first instant. The zero value means some day in 2026.
	Origin time.Time

	// Seed makes the random histories. The same seed makes the same ones.
	Seed uint64
}

// A Departure is a call of n units that left.
type Departure struct {
	At time.Time
	N  int64
}

// rounds is the number of random histories for each property.
const rounds = 100

// Run holds the schedule of c to the contract of [scheduler.Scheduler], one
// subtest for each promise.
func Run(t *testing.T, c Config) {
	if c.New == nil || c.Step <= 0 {
		t.Fatalf("schedulertest: Config needs New and a positive Step, not %v", c.Step)
	}
	if c.Origin.IsZero() {
		c.Origin = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	}
	t.Run("NextIsNotBeforeT", c.nextIsNotBeforeT)
	t.Run("NextChangesNothing", c.nextChangesNothing)
	t.Run("NextIsTheEarliest", c.nextIsTheEarliest)
	if c.Conforms != nil {
		t.Run("NextIsWhatTheDefinitionAllows", c.nextIsWhatTheDefinitionAllows)
	}
	t.Run("NextAheadMatchesDepartures", c.nextAheadMatchesDepartures)
	t.Run("NextIsMonotone", c.nextIsMonotone)
	t.Run("GreedyReleaseEqualsBruteForce", c.greedyReleaseEqualsBruteForce)
	t.Run("StaleTimeMintsNothing", c.staleTimeMintsNothing)
	t.Run("ExtremesNeverWrap", c.extremesNeverWrap)
	t.Run("MaxCostIsHonest", c.maxCostIsHonest)
	if _, ok := c.New().(stater); ok {
		t.Run("StateOutlivesTheProcess", c.stateOutlivesTheProcess)
	}
}

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

func (c Config) past(rng *rand.Rand) history {
	h := history{s: c.New(), now: c.Origin}
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

// leaveLate lets n units leave later than they could, as a late timer does.
func (h *history) leaveLate(n int64, late time.Duration) {
	due := h.s.Next(h.now, 0, n)
	h.now = due.Add(late)
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

func (c Config) nextIsNotBeforeT(t *testing.T) {
	c.histories(func(rng *rand.Rand, h, _ history) {
		ahead, n := rng.Int64N(20), c.cost(rng, h.s)
		if got := h.s.Next(h.now, ahead, n); got.Before(h.now) {
			t.Errorf("Next(t, %d, %d) is %v before t", ahead, n, h.now.Sub(got))
		}
	})
}

func (c Config) nextChangesNothing(t *testing.T) {
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

func (c Config) nextIsTheEarliest(t *testing.T) {
	c.histories(func(rng *rand.Rand, h, _ history) {
		n := c.cost(rng, h.s)
		next := h.s.Next(h.now, 0, n)
		if again := h.s.Next(next, 0, n); !again.Equal(next) {
			t.Errorf("Next names an instant at which %d units may not leave: they may %v later", n, again.Sub(next))
		}
		if early := next.Add(-1); !early.Before(h.now) {
			if again := h.s.Next(early, 0, n); !again.Equal(next) {
				t.Errorf("%d units may leave 1 ns before Next", n)
			}
		}
	})
}

func (c Config) nextIsWhatTheDefinitionAllows(t *testing.T) {
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
				for _, early := range []time.Duration{0, wait - 1, time.Duration(rng.Int64N(int64(wait)))} {
					if c.Conforms(h.left, h.now.Add(early), n) {
						t.Errorf("%d units may leave %v before Next", n, wait-early)
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
		t.Errorf("nobody ever had to wait: is Step, %v, too long?", c.Step)
	}
}

func (c Config) nextAheadMatchesDepartures(t *testing.T) {
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

func (c Config) nextIsMonotone(t *testing.T) {
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

// greedyReleaseEqualsBruteForce steps through a grid of instants and asks the
// meter at each: the first that it allows is the first one not before Next.
func (c Config) greedyReleaseEqualsBruteForce(t *testing.T) {
	grid := max(c.Step/16, 1)
	c.histories(func(rng *rand.Rand, paced, metered history) {
		paced.now = paced.now.Truncate(grid).Add(grid)
		metered.now = paced.now
		for range 5 {
			n := c.cost(rng, paced.s)
			steps := paced.s.Next(paced.now, 0, n).Sub(paced.now)
			paced.now = paced.now.Add((steps + grid - 1) / grid * grid)
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

func (c Config) staleTimeMintsNothing(t *testing.T) {
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

func (c Config) extremesNeverWrap(t *testing.T) {
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

func (c Config) maxCostIsHonest(t *testing.T) {
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

// A stater is a schedule whose state can be saved and loaded.
type stater interface {
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

func (c Config) stateOutlivesTheProcess(t *testing.T) {
	state := func(s scheduler.Scheduler) []byte {
		data, err := s.(stater).MarshalBinary()
		if err != nil {
			t.Fatalf("MarshalBinary: %v", err)
		}
		return data
	}
	c.histories(func(rng *rand.Rand, saved, twin history) {
		data := state(saved.s)
		bad := [][]byte{nil, append(bytes.Clone(data), 0), []byte("to be or not to be, that is the question")}
		for range 10 {
			i := rng.IntN(len(data))
			flipped := bytes.Clone(data)
			flipped[i] ^= byte(1 + rng.IntN(255))
			bad = append(bad, data[:i], flipped)
		}
		for _, b := range bad {
			if err := saved.s.(stater).UnmarshalBinary(b); err == nil {
				t.Fatalf("UnmarshalBinary accepts %x; the state is %x", b, data)
			}
		}
		if got := state(saved.s); !bytes.Equal(got, data) {
			t.Fatalf("what UnmarshalBinary refused changed the state from %x to %x", data, got)
		}

		loaded := history{s: c.New(), now: saved.now.Add(c.gap(rng))} // time away counts as elapsed
		twin.now = loaded.now
		if err := loaded.s.(stater).UnmarshalBinary(data); err != nil {
			t.Fatalf("UnmarshalBinary: %v", err)
		}
		if got := state(loaded.s); !bytes.Equal(got, data) {
			t.Fatalf("the state %x is loaded as %x", data, got)
		}
		for range 10 {
			n := c.cost(rng, loaded.s)
			loaded.leave(n)
			twin.leave(n)
			if !loaded.now.Equal(twin.now) {
				t.Errorf("the loaded schedule lets %d units leave at %v, want %v", n,
					loaded.now.Sub(c.Origin), twin.now.Sub(c.Origin))
				return
			}
		}
	})
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
