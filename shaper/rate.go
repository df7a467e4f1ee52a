package shaper

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// SetRate changes the rate at once, also for the calls that wait. Units that are
// owed stay owed and their time is recomputed. A waiting call that cannot leave
// before the deadline of its context any more is refused at once, with
// [ErrDeadline].
//
// An invalid rate, or a Shaper made by [NewFrom] of a schedule whose rate cannot
// be set, is an error that changes nothing.
func (s *Shaper) SetRate(r scheduler.Rate) error {
	s.lock()
	defer s.unlock()
	pacer, ok := s.pacer.(interface {
		SetRate(now time.Time, r scheduler.Rate) error
	})
	if !ok {
		return fmt.Errorf("shaper: rate %v: the rate of a %T cannot be set", r, s.pacer)
	}
	now := s.time.now()
	s.settleLocked(now)
	if err := pacer.SetRate(now, r); err != nil {
		return fmt.Errorf("shaper: %w", err)
	}
	s.boundBacklogLocked()
	s.dismissLateLocked(now)
	s.dispatchLocked(now)
	return nil
}

// dismissLateLocked refuses the waiting calls that a change has made too late for
// their deadlines. Those behind them move up.
func (s *Shaper) dismissLateLocked(now time.Time) {
	var ahead int64
	for c := s.line.head; c != nil; {
		next := c.next
		if c.deadline.IsZero() {
			ahead += c.cost
		} else if due := s.dueLocked(now, ahead, c.cost); due.Before(c.deadline) {
			ahead += c.cost
		} else {
			s.dismissLocked(c, ErrDeadline, due.Sub(now))
		}
		c = next
	}
}
