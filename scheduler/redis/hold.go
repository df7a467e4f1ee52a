package redis

import "time"

// Hold implements the optional part of [scheduler.Scheduler]. With [WithSharedHold] it
// has all processes held until then; it does not wait for that. Of two holds the later
// one stands.
func (s *Schedule) Hold(until time.Time) {
	s.mustBeMade()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config.now()
	if !s.config.sharedHold || s.closed || !until.After(later(now, s.held)) {
		return
	}
	// As the rest, it is told as a time from now: the clocks of others matter not.
	s.held = now.Add(until.Sub(now))
	// If a step is under way, its end sees to this one.
	s.lookAtStoreLocked(now)
	s.planLocked(now, 0, 0)
}

// tellsHoldLocked reports whether the store has yet to be told of a hold.
func (s *Schedule) tellsHoldLocked(now time.Time) bool { return s.held.After(now) }

// unconfirmedLocked reports whether a process may have held all since the first slot in
// hand was reserved.
func (s *Schedule) unconfirmedLocked(now time.Time) bool {
	return s.config.sharedHold && !s.away && s.hand.units > 0 &&
		now.Sub(s.seen) > s.config.horizon && s.hand.slot(0).Sub(now) <= s.config.horizon+time.Millisecond
}
