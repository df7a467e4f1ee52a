package redis

import "time"

// A schedule is not told that a call has given up. So while there are slots in hand, or
// the store is away, it has the line look again from time to time: a line in which
// a call waits asks, and an empty one is silent.

// maxPatience bounds for how long a slot stays in hand after its call has gone.
const maxPatience = time.Second

// patienceLocked returns when to look: often enough that what is handed back is of use.
func (s *Schedule) patienceLocked(now time.Time) time.Duration {
	d := min(max(s.hand.last().Sub(now)/8, s.config.horizon), maxPatience)
	if s.config.sharedHold && s.hand.units > 0 {
		// A horizon before a slot is used it is confirmed.
		if until := s.hand.slot(0).Sub(now) - s.config.horizon; until > 0 {
			d = min(d, until+1)
		}
	}
	return d
}

func (s *Schedule) lookLaterLocked(d time.Duration) {
	if s.looking == nil && !s.closed && (s.hand.units > 0 || s.away || s.pendingLocked(s.config.now())) {
		s.looking = time.AfterFunc(d, s.look)
	}
}

func (s *Schedule) look() {
	s.mu.Lock()
	s.looking = nil
	s.asked, s.later = false, false
	again := s.again
	s.mu.Unlock()
	if again != nil {
		again()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config.now()
	switch {
	case s.closed || s.taking:
		// Whatever is under way looks when it ends.
	case !s.asked:
		s.giveBackLocked(now)
		if s.pendingLocked(now) {
			s.lookAtStoreLocked(now)
			s.planLocked(now, 0, 0)
		}
	case s.unconfirmedLocked(now):
		s.takeLocked(s.requestLocked(now, 0))
	default:
		s.lookLaterLocked(s.patienceLocked(now))
	}
}

// giveBackLocked hands back what no call waits for, as far as it is of use to others.
func (s *Schedule) giveBackLocked(now time.Time) {
	if s.taking {
		return // the end of the step looks after it
	}
	s.lookAtStoreLocked(now)
	var back surplus
	if s.hand.units > 0 {
		// A line that is held, or paused, waits still. It says so in the one case, and in
		// the other it is believed once.
		if !s.later && s.doubt {
			s.demand = 0
		}
		s.doubt = !s.later
		rest, tail, units := s.hand.surplus()
		worth := s.hand.runs[len(s.hand.runs)-1].local(s.pace, tail).After(now)
		s.counts.Missed += s.hand.units
		s.hand.clear()
		if worth && !s.away {
			s.counts.Missed -= units
			back = surplus{back: true, rest: rest, tail: tail, returned: units}
		}
	}
	if s.away || !back.back && !s.pendingLocked(now) {
		return
	}
	r := s.requestLocked(now, min(s.owed, s.MaxCost()))
	if back.back {
		r.surplus = back
	}
	s.takeLocked(r)
}
