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

// counts are the events that Stats tells of, but for the calls of the fast path.
type counts struct {
	submitted, left, cancelled, refused int64
	units                               int64 // of the calls that left
}

// leave counts a call that leaves.
func (c *counts) leave(cost int64) {
	c.left++
	c.units = saturatingSum(c.units, cost)
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

// Stats returns a snapshot.
func (s *Shaper) Stats() Stats {
	s.lock()
	defer s.unlock()
	now := s.time.now()
	s.unusedLocked(now)
	fast := s.fast.left.Load()
	st := Stats{
		Submitted: s.counts.submitted + fast,
		Left:      s.counts.left + fast,
		Cancelled: s.counts.cancelled,
		Refused:   s.counts.refused,
		Waiting:   int64(s.line.len),
		Units:     s.line.units,
		InFlight:  s.places.taken,
		Paused:    s.gate.paused,
		LeftUnits: saturatingSum(s.counts.units, s.fast.units()),
		Rate:      rateOf(s.pacer),
	}
	st.UnusedUnits = s.unused.tell(st.Rate)
	if s.line.head != nil {
		st.Oldest = now.Sub(s.time.epoch.Add(s.line.oldest()))
		if !s.standsLocked() {
			st.NextDue = s.time.wall(now, s.nextDue)
		}
	}
	st.HeldUntil = s.heldUntilLocked()
	return st
}
