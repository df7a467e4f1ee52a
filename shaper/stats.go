package shaper

import (
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// Stats is one consistent snapshot of a Shaper. At any moment
//
//	Submitted = Left + Cancelled + Refused + Waiting
//
// The counts are of calls, not of units, since the Shaper was made.
type Stats struct {
	Submitted int64 // calls that asked, and charges
	Left      int64 // calls that left
	Cancelled int64 // calls whose context ended before they left
	Refused   int64 // calls that were refused
	Waiting   int64 // calls in the line now
	Units     int64 // the units of the calls in the line
	InFlight  int64 // calls of Acquire that are not released yet, and of Do

	Rate      scheduler.Rate // the rate; the zero Rate if the schedule has none
	Paused    bool
	HeldUntil time.Time // when the hold ends; zero if none is in force
}

// counts are the events that Stats tells of, but for the calls of the express.
type counts struct {
	submitted, left, cancelled, refused int64
}

// Stats returns a snapshot.
func (s *Shaper) Stats() Stats {
	s.lock()
	defer s.unlock()
	express := s.express.left.Load()
	st := Stats{
		Submitted: s.counts.submitted + express,
		Left:      s.counts.left + express,
		Cancelled: s.counts.cancelled,
		Refused:   s.counts.refused,
		Waiting:   int64(s.line.len),
		Units:     s.line.units,
		InFlight:  s.places.taken,
		Paused:    s.gate.paused,
	}
	if rated, ok := s.pacer.(scheduler.Rated); ok {
		st.Rate = rated.Rate()
	}
	st.HeldUntil = s.heldUntilLocked()
	return st
}
