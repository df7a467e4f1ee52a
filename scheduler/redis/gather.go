package redis

import "time"

// Calls that come one by one, faster than Redis should be asked, are gathered for a
// while. That is worth it only as long as more of them come: callers that wait for their
// answer before they call again would only be slowed down.

// A gathering decides when a step waits for more calls.
type gathering struct {
	joined  int64 // calls that have come to wait
	before  int64 // what joined was at the latest look
	exempt  int   // steps that need not wait
	lenient int   // what exempt is next time that no call comes
}

const maxExempt = 256

// gatherLocked reports whether a step has to wait, and sees to it that it is taken then.
func (s *Schedule) gatherLocked(now time.Time, head int64) bool {
	g := &s.gathering
	at := s.steps.Next(now, 0, 1)
	switch {
	case !at.After(now):
		return false
	case g.exempt > 0:
		g.exempt--
		return false
	}
	s.awaitMoreLocked(at.Sub(now), head)
	return true
}

func (s *Schedule) awaitMoreLocked(most time.Duration, head int64) {
	s.gathering.before = s.gathering.joined
	s.delayed = time.AfterFunc(min(most, s.config.horizon/25), func() { s.gathered(head) })
}

func (s *Schedule) gathered(head int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delayed = nil
	now := s.config.now()
	g := &s.gathering
	switch at := s.steps.Next(now, 0, 1); {
	case s.closed:
		return
	case !at.After(now):
		g.lenient = 0
	case g.joined > g.before:
		s.awaitMoreLocked(at.Sub(now), head)
		return
	default:
		g.lenient = min(2*g.lenient+1, maxExempt)
		g.exempt = g.lenient
	}
	s.planLocked(now, 0, head)
}
