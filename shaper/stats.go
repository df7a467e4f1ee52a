package shaper

import (
	"math"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// Stats is one consistent snapshot of a Shaper. At any moment
//
//	Submitted = Left + Cancelled + Refused + Waiting
//
// The counts are of calls since the Shaper was made, but for those whose name says units.
type Stats struct {
	Submitted int64 // calls that asked, and charges
	Left      int64 // calls that left
	Cancelled int64 // calls whose context ended before they left
	Refused   int64 // calls that were refused
	Waiting   int64 // calls in the line now
	Units     int64 // the units of the calls in the line
	InFlight  int64 // calls of Acquire that are not released yet, and of Do

	Oldest  time.Duration // how long the call has waited that has waited longest; 0 if none waits
	NextDue time.Time     // when the head of the line is due; zero if no call waits, or for no instant

	LeftUnits   int64 // the units of the calls that left
	UnusedUnits int64 // the units of the rate that passed unused while no call waited; 0 if the schedule is no GCRA

	Rate      scheduler.Rate // the rate; the zero Rate if the schedule has none
	Paused    bool
	HeldUntil time.Time // when the hold ends; zero if none is in force
}

// counts are the fates that Stats tells of, but for the calls of the fast path.
type counts struct {
	of    [fates]int64
	units int64 // of the calls that left
}

// A fate is what befalls a call.
type fate int

const (
	submitted fate = iota
	departed
	cancelled
	refused
	fates
)

func (c *counts) count(e fate, units int64) {
	c.of[e]++
	c.units = saturatingSum(c.units, units)
}

// countLocked counts an event of a call of the key. The units are those that left.
func (f *flow) countLocked(e fate, units int64) {
	f.line.counts.count(e, units)
	if f.party != nil {
		f.party.counts.count(e, units)
	}
}

// saturatingSum returns a+b for a, b >= 0, or the largest int64.
func saturatingSum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Used returns the share of the units used of those that the rate has offered, from 0 to 1,
// or 0 if it has offered none. Near 1 the limit is reached: the line will grow without
// bound if more is asked for, long before waits tell.
func (st Stats) Used() float64 {
	left, unused := float64(st.LeftUnits), float64(st.UnusedUnits)
	if left == 0 {
		return 0
	}
	return left / (left + unused)
}

// Stats returns a snapshot. Calls of Groups that are under the Shaper are counted.
func (s *Shaper) Stats() Stats { return s.own.stats() }

// stats tells of the line of the key.
func (f *flow) stats() Stats {
	l := f.lock()
	defer l.unlock()
	now := l.time.now()
	l.passLocked(now)
	fast := l.fast.left.Load()
	st := Stats{
		Submitted: l.counts.of[submitted] + fast,
		Left:      l.counts.of[departed] + fast,
		Cancelled: l.counts.of[cancelled],
		Refused:   l.counts.of[refused],
		Waiting:   int64(l.len),
		Units:     l.units,
		InFlight:  l.places.taken,
		Paused:    l.gate.paused,
		LeftUnits: saturatingSum(l.counts.units, l.fast.units()),
		Rate:      rateOf(l.pacer),
	}
	st.UnusedUnits = l.unused.tell(st.Rate)
	l.eachLocked(func(f *flow) { st.Oldest = max(st.Oldest, f.oldestLocked(now)) })
	if l.head != nil && !l.stand(l.head.calls.head.place) {
		st.NextDue = l.time.wall(now, l.nextDue)
	}
	st.HeldUntil = l.first.heldUntilLocked()
	return st
}

// oldestLocked returns for how long the call of the key has waited that has waited longest.
func (f *flow) oldestLocked(now time.Time) time.Duration {
	return now.Sub(f.line.time.epoch.Add(f.calls.oldest()))
}
