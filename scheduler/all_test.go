package scheduler_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/trial"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/schedulertest"
)

func TestAllConformance(t *testing.T) {
	trial.Run(t, 5, func(t *testing.T, rng *rand.Rand) {
		type limit struct{ units, burst int64 }
		limits := make([]limit, 1+rng.IntN(3))
		for i := range limits {
			limits[i] = limit{units: 1 + rng.Int64N(20), burst: 1 + rng.Int64N(6)}
		}
		schedulertest.Run(t, schedulertest.Config{
			New: func() scheduler.Scheduler {
				members := make([]scheduler.Scheduler, len(limits))
				for i, l := range limits {
					members[i] = newGCRA(t, scheduler.PerSecond(l.units), l.burst)
				}
				return scheduler.All(members...)
			},
			Step:       100 * time.Millisecond,
			ExactAhead: true,
		})
	})
}

// One limit has run dry while another still owes, so units leave late for both.
func TestAllPredictsFromTheFirstDeparture(t *testing.T) {
	trial.Run(t, 2000, func(t *testing.T, rng *rand.Rand) {
		members := make([]scheduler.Scheduler, 2+rng.IntN(2))
		for i := range members {
			members[i] = newGCRA(t, scheduler.PerSecond(1+rng.Int64N(20)), 1+rng.Int64N(6))
			if owed := rng.Int64N(40); owed > 0 {
				members[i].Commit(origin, origin, owed)
			}
		}
		s := scheduler.All(members...)
		ahead, n := rng.Int64N(20), 1+rng.Int64N(8)
		now := origin.Add(time.Duration(rng.Int64N(int64(time.Second))))
		predicted := s.Next(now, ahead, n)
		for range ahead {
			due := s.Next(now, 0, 1)
			s.Commit(due, due, 1)
		}
		// Each unit that one limit holds back leaves at a whole nanosecond, later by a part of one for the others.
		actual := s.Next(now, 0, n)
		assert.WithinRange(t, predicted, actual.Add(-time.Duration(ahead)), actual, "ahead %d, cost %d", ahead, n)
	})
}

func TestAllKeepsBothDefinitions(t *testing.T) {
	schedulertest.Run(t, schedulertest.Config{
		New: func() scheduler.Scheduler {
			return scheduler.All(newTokenBucket(t, scheduler.PerSecond(10), 5), newSlidingLog(t, 7, time.Second))
		},
		Step:     100 * time.Millisecond,
		Conforms: both(bucket(5, 100*time.Millisecond), anyWindow(7, time.Second)),
	})
}

func TestAllWaitsAreNotSummed(t *testing.T) {
	s := scheduler.All(newGCRA(t, scheduler.PerMinute(60), 1), newGCRA(t, scheduler.PerSecond(4), 1))
	assert.Equal(t, []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second}, drain(s, 5))
}

func TestAllTellsTheSlowestRate(t *testing.T) {
	rated := func(s ...scheduler.Scheduler) scheduler.Rate {
		return scheduler.All(s...).(scheduler.Rated).Rate()
	}
	assert.Equal(t, scheduler.PerMinute(59), rated(
		newGCRA(t, scheduler.PerSecond(1), 1), newGCRA(t, scheduler.PerMinute(59), 1), newGCRA(t, scheduler.PerMinute(60), 1)))
}

// fakeHolder and fakeNotifier are limits with one optional interface.
type (
	fakeHolder struct {
		scheduler.Scheduler
		until time.Time
	}
	fakeNotifier struct {
		scheduler.Scheduler
		again func()
	}
)

func (h *fakeHolder) Hold(until time.Time)  { h.until = until }
func (n *fakeNotifier) Notify(again func()) { n.again = again }

// All claims what its limits have, and nothing else, in whatever order and nested.
func TestAllClaimsWhatItsLimitsHave(t *testing.T) {
	window := func() scheduler.Scheduler { return newFixedWindow(t, 5, time.Minute) }
	for bits := range 8 {
		holder, notifier := &fakeHolder{Scheduler: window()}, &fakeNotifier{Scheduler: window()}
		limits := []scheduler.Scheduler{window()}
		rate, hold, notify := bits&1 > 0, bits&2 > 0, bits&4 > 0
		if rate {
			limits = append(limits, newGCRA(t, scheduler.PerSecond(3), 1))
		}
		if hold {
			limits = append(limits, holder)
		}
		if notify {
			limits = append(limits, notifier)
		}
		for name, s := range map[string]scheduler.Scheduler{
			"as given": scheduler.All(limits...), "reversed": scheduler.All(reversed(limits)...), "nested": scheduler.All(scheduler.All(limits...)),
		} {
			rated, isRated := s.(scheduler.Rated)
			_, isHolder := s.(scheduler.Holder)
			_, isNotifier := s.(scheduler.Notifier)
			require.Equal(t, []bool{rate, hold, notify}, []bool{isRated, isHolder, isNotifier}, "%s of %d", name, bits)
			if rate {
				assert.Equal(t, scheduler.PerSecond(3), rated.Rate())
			}
			if hold {
				holder.until = time.Time{}
				s.(scheduler.Holder).Hold(origin)
				assert.Equal(t, origin, holder.until, name)
			}
			if notify {
				notifier.again = nil
				s.(scheduler.Notifier).Notify(func() {})
				assert.NotNil(t, notifier.again, name)
			}
			_, isSetter := s.(scheduler.RateSetter)
			assert.False(t, isSetter)
		}
	}
}

func TestAllForfeitsInEveryLimit(t *testing.T) {
	a, b := newGCRA(t, scheduler.PerSecond(10), 3), newGCRA(t, scheduler.PerSecond(20), 9)
	s := scheduler.All(a, b)
	s.(scheduler.Forfeiter).Forfeit(origin, 1)
	assert.Equal(t, []time.Duration{0, 100 * time.Millisecond, 200 * time.Millisecond}, drain(a, 3))
	assert.Equal(t, []time.Duration{0, 50 * time.Millisecond, 100 * time.Millisecond}, drain(b, 3))
	assert.EqualValues(t, 3, a.Burst())
}

func TestAllRefusesNil(t *testing.T) {
	assert.Panics(t, func() { scheduler.All(nil) })
}

func TestAllOfNothingDelaysNothing(t *testing.T) {
	assert.Equal(t, []time.Duration{0, 0, 0}, drain(scheduler.All(), 3))
}

// asked is a limit that remembers what it was asked about.
type asked struct {
	scheduler.Scheduler
	at  time.Time
	all []time.Time
}

func (a *asked) Next(t time.Time, ahead, n int64) time.Time {
	a.at, a.all = t, append(a.all, t)
	return a.Scheduler.Next(t, ahead, n)
}

func (a *asked) Notify(func()) {}

// A limit that prepares for what it is asked about is asked for when the others say yes,
// wherever it stands among them.
func TestAllAsksPreparersLast(t *testing.T) {
	slow := newGCRA(t, scheduler.PerHour(1), 1)
	slow.Commit(origin, origin, 1)
	shared := &asked{Scheduler: newGCRA(t, scheduler.PerSecond(10), 1)}
	for _, s := range []scheduler.Scheduler{scheduler.All(shared, slow), scheduler.All(slow, shared)} {
		require.Equal(t, origin.Add(time.Hour), s.Next(origin, 0, 1))
		require.Equal(t, origin.Add(time.Hour), shared.at)
	}
}
