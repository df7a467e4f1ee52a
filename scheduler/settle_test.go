package scheduler_test

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/oracle"
	"github.com/sluice-go/sluice/internal/trial"
	"github.com/sluice-go/sluice/scheduler"
)

// A settled schedule, driven beside its replays. Instants are ns since the origin.
type settled interface {
	next(t, n int64) int64
	leave(due, left, n int64, unsettled bool)
	settle(call int, cost int64) // of the unsettled ones, in the order in which they left
	setRate(now int64, r scheduler.Rate)
	forfeit(t, keep int64)
}

// settling is a schedule of this package, or several.
type settling struct {
	s   scheduler.Scheduler
	all []scheduler.Scheduler // the limits, if they are several
	ids []uint64
}

func at(ns int64) time.Time { return origin.Add(time.Duration(ns)) }

func (s *settling) next(t, n int64) int64 { return int64(s.s.Next(at(t), 0, n).Sub(origin)) }

func (s *settling) leave(due, left, n int64, unsettled bool) {
	if !unsettled {
		s.s.Commit(at(due), at(left), n)
		return
	}
	id := uint64(3*len(s.ids) + 1)
	s.ids = append(s.ids, id)
	s.s.(scheduler.Settler).CommitUnsettled(id, at(due), at(left), n)
}

func (s *settling) settle(call int, cost int64) {
	if err := s.s.(scheduler.Settler).Settle(s.ids[call], cost); err != nil {
		panic(err)
	}
}

func (s *settling) setRate(now int64, r scheduler.Rate) {
	for _, limit := range s.all {
		if err := limit.(scheduler.RateSetter).SetRate(at(now), r); err != nil {
			panic(err)
		}
	}
}

func (s *settling) forfeit(t, keep int64) { s.s.(scheduler.Forfeiter).Forfeit(at(t), keep) }

// replays are the oracle of one limit, or several.
type replays struct {
	of    []*oracle.Replay
	calls [][]int // of each
	open  int     // how many are unsettled
}

func newReplays(of ...*oracle.Replay) *replays {
	return &replays{of: of, calls: make([][]int, len(of))}
}

func (s *replays) next(t, n int64) int64 {
	due := t
	for _, r := range s.of {
		due = max(due, r.Due(t, n))
	}
	return due
}

func (s *replays) leave(due, left, n int64, unsettled bool) {
	if unsettled {
		s.open++
	}
	for i, r := range s.of {
		if c := r.Leave(due, left, n); unsettled {
			s.calls[i] = append(s.calls[i], c)
		}
	}
}

func (s *replays) settle(call int, cost int64) {
	s.open--
	for i, r := range s.of {
		r.Settle(s.calls[i][call], cost)
	}
}

func (s *replays) setRate(now int64, r scheduler.Rate) {
	for _, of := range s.of {
		of.SetInterval(now, oracle.Interval(r.Units(), r.Period()), s.open > 0)
	}
}

func (s *replays) forfeit(t, keep int64) {
	for _, of := range s.of {
		of.Forfeit(t, keep)
	}
}

// settleRates have whole numbers of nanoseconds for an interval, or not.
var settleRates = []scheduler.Rate{
	scheduler.PerSecond(10), scheduler.PerSecond(3), scheduler.PerSecond(7), scheduler.PerMinute(100),
	scheduler.PerSecond(20), scheduler.PerMinute(11),
}

// differs drives both with the same calls, estimates, holds, changes of the rate, late
// departures and costs that become known, and reports whether they ever name another instant:
// early if the first one names one that is too early. Once the rate has changed, instants that
// lie no more than so many nanoseconds apart are the same.
func differs(rng *rand.Rand, burst int64, s, want settled, turned int64) (differs, early bool) {
	const ms = int64(time.Millisecond)
	near := int64(0)
	type call struct {
		number int
		actual int64
	}
	var open []call
	now, calls := int64(0), 0
	look := func() {
		for _, n := range []int64{1, 1 + rng.Int64N(burst+4), burst} {
			got, should := s.next(now, n), want.next(now, n)
			differs = differs || got < should-near || got > should+near
			early = early || got < should-near
		}
	}
	for range 15 + rng.IntN(35) {
		switch rng.IntN(4) {
		case 0:
			now += rng.Int64N(40 * ms)
		case 1:
			now += rng.Int64N(3000 * ms)
		case 2:
			now += rng.Int64N(3)
		}
		switch n := 1 + rng.Int64N(10); rng.IntN(12) {
		case 0:
			r := settleRates[rng.IntN(len(settleRates))]
			s.setRate(now, r)
			want.setRate(now, r)
			near = turned
		case 1, 2:
			// After a hold, say, of which the end may be past.
			t, keep := now-rng.Int64N(50*ms), rng.Int64N(burst+2)
			s.forfeit(t, keep)
			want.forfeit(t, keep)
		case 3:
			// It has left without asking.
			s.leave(now, now, n, false)
			want.leave(now, now, n, false)
		default:
			from := now - rng.Int64N(2)*rng.Int64N(20*ms) // it may claim to be late
			due := s.next(from, n)
			if d := want.next(from, n); d < due-near || d > due+near {
				return true, due < d
			}
			now = max(now, due) + rng.Int64N(2)*rng.Int64N(30*ms)
			unsettled := rng.IntN(3) > 0
			s.leave(due, now, n, unsettled)
			want.leave(due, now, n, unsettled)
			if unsettled {
				open = append(open, call{calls, rng.Int64N(n + 1)})
				if rng.IntN(4) == 0 {
					open[len(open)-1].actual = n + rng.Int64N(5)
				}
				calls++
			}
		}
		for len(open) > 0 && rng.IntN(5) < 2 {
			i := rng.IntN(len(open))
			s.settle(open[i].number, open[i].actual)
			want.settle(open[i].number, open[i].actual)
			open = append(open[:i], open[i+1:]...)
			look()
		}
		if look(); differs {
			return differs, early
		}
	}
	return differs, early
}

var settleBursts = []int64{1, 10, 50}

func drawRate(rng *rand.Rand) scheduler.Rate { return settleRates[rng.IntN(len(settleRates))] }

func intervalOf(r scheduler.Rate) *big.Rat { return oracle.Interval(r.Units(), r.Period()) }

// A settled GCRA is the replay of its departures with the costs as now known.
func TestSettledIsTheReplay(t *testing.T) {
	trial.Run(t, 3000, func(t *testing.T, rng *rand.Rand) {
		r, burst := drawRate(rng), settleBursts[rng.IntN(3)]
		j := time.Duration(rng.Int64N(2) * rng.Int64N(int64(20*time.Millisecond)))
		g := newGCRA(t, r, burst, scheduler.WithTolerance(j))
		wrong, _ := differs(rng, burst, &settling{s: g, all: []scheduler.Scheduler{g}},
			newReplays(oracle.NewReplay(intervalOf(r), burst, j)), 0)
		require.False(t, wrong, "burst %d, %v, tolerance %v", burst, r, j)
	})
}

// To take the difference off TAT fails the same test, and lets units leave too early.
func TestPlainSubtractionIsNotTheReplay(t *testing.T) {
	wrong, early, runs := 0, 0, 0
	trial.Run(t, 300, func(t *testing.T, rng *rand.Rand) {
		r, burst := drawRate(rng), settleBursts[rng.IntN(3)]
		plain := oracle.NewReplay(intervalOf(r), burst, 0)
		plain.Plain = true
		w, e := differs(rng, burst, newReplays(plain), newReplays(oracle.NewReplay(intervalOf(r), burst, 0)), 0)
		runs++
		if w {
			wrong++
		}
		if e {
			early++
		}
	})
	assert.Greater(t, wrong, runs/2)
	assert.Greater(t, early, runs/4)
}

// Several limits keep a count each of what leaves at one instant.
func TestSettledJointly(t *testing.T) {
	trial.Run(t, 1500, func(t *testing.T, rng *rand.Rand) {
		var limits []scheduler.Scheduler
		var of []*oracle.Replay
		burst := int64(0)
		for range 2 {
			r, b := drawRate(rng), settleBursts[rng.IntN(3)]
			j := time.Duration(rng.Int64N(2) * rng.Int64N(int64(20*time.Millisecond)))
			limits = append(limits, newGCRA(t, r, b, scheduler.WithTolerance(j)))
			of = append(of, oracle.NewReplay(intervalOf(r), b, j))
			burst = max(burst, b)
		}
		wrong, _ := differs(rng, burst, &settling{s: scheduler.All(limits...), all: limits}, newReplays(of...), 0)
		require.False(t, wrong)
	})
}

// The buckets are the same rule, exactly but for a change of the rate: that keeps the part of a
// unit that came in the last nanosecond, and the replay its time.
func TestSettledBucketsAreTheReplay(t *testing.T) {
	rates := []scheduler.Rate{scheduler.PerSecond(3), scheduler.PerSecond(7), scheduler.PerSecond(11), scheduler.PerSecond(13)}
	trial.Run(t, 2000, func(t *testing.T, rng *rand.Rand) {
		defer func(before []scheduler.Rate) { settleRates = before }(settleRates)
		settleRates = rates
		r, burst := drawRate(rng), 10+40*rng.Int64N(2)
		var s scheduler.Scheduler = newTokenBucket(t, r, burst)
		if rng.IntN(2) == 0 {
			s = newLeakyBucket(t, r, burst)
		}
		wrong, _ := differs(rng, burst, within{&settling{s: s, all: []scheduler.Scheduler{s}}, burst, new(int64)},
			within{newReplays(oracle.NewReplay(intervalOf(r), burst, 0)), burst, new(int64)}, 2)
		require.False(t, wrong, "%T of %d, %v", s, burst, r)
	})
}

// within asks for no more than a bucket holds, and of no time past: a bucket charges as of when
// units left, and knows no time before it was touched.
type within struct {
	settled
	most int64
	now  *int64
}

func (w within) next(t, n int64) int64 {
	*w.now = max(*w.now, t)
	return w.settled.next(*w.now, min(n, w.most))
}

func (w within) leave(due, left, n int64, unsettled bool) {
	*w.now = max(*w.now, left)
	w.settled.leave(left, left, min(n, w.most), unsettled)
}

func (w within) forfeit(t, keep int64) {
	*w.now = max(*w.now, t)
	w.settled.forfeit(*w.now, keep)
}
