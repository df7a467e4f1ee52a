package shaper

// Charge records a call of the given cost that has left without asking, because
// something below resent it or another program uses the same limit. It never waits.
// The waiting calls move back by what it cost, as if it had left in its turn; one that
// cannot make its deadline any more is refused with [ErrDeadline].
//
// A cost below 1 is ignored. Charge works after Close, too: what has left has left.
func (s *Shaper) Charge(cost int) {
	if cost < 1 {
		return
	}
	s.lock()
	defer s.unlock()
	now := s.time.now()
	s.unusedLocked(now)
	if s.gate.open(now) {
		s.passGateLocked(int64(cost)) // it may be the first behind a gate
	}
	s.claimLocked(now, int64(cost), false) // a line that had run dry has no claim any more
	s.sched.Commit(now, now, int64(cost))
	s.late.passed(now)
	s.debt = int64(cost)
	s.counts.submitted++
	s.counts.leave(int64(cost))
	s.dismissLateLocked(now)
	s.dispatchLocked(now)
}
