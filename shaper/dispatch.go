package shaper

import "time"

// dispatch lets everybody leave who is due. It is what timers call; one that fires
// for nothing, because it was stopped too late, does no harm.
func (s *Shaper) dispatch() {
	s.lock()
	defer s.unlock()
	s.dispatchLocked(s.time.now())
}

// dispatchLocked is the one place where waiting ends: look at the head, ask the
// schedule, let it leave or set the alarm. Whatever changes the line, the schedule
// or the gate calls it afterwards.
func (s *Shaper) dispatchLocked(now time.Time) {
	nobodyLeft := true
	for c := s.line.head; c != nil && !s.gate.paused; c = s.line.head {
		// Ask for the time since when it could leave, not for now: if the timer
		// was late, the schedule shall know by how much.
		since := later(s.time.epoch.Add(c.arrived), s.gate.openAt)
		if c.place {
			if !s.places.free() {
				break // until one is released
			}
			since = later(since, s.places.freedAt)
		}
		due := s.sched.Next(since, 0, c.cost)
		if wait := due.Sub(now); wait > 0 {
			s.nextDue = due
			s.alarm.set(c, wait)
			return
		}
		if nobodyLeft {
			// Of those who leave together the first one is the latest, and all of
			// them come back together.
			s.lag = min(now.Sub(due), s.tolerance)
			nobodyLeft = false
		}
		s.departLocked(due, now, c.cost, c.place)
		s.line.remove(c)
		s.alarm.forget(c)
		c.answer(false)
	}
	s.alarm.stop()
	s.life.noteLocked(s.line.len)
}

// departLocked charges what leaves.
func (s *Shaper) departLocked(due, now time.Time, cost int64, place bool) {
	s.gate.passLocked(s.sched, cost)
	s.sched.Commit(due, now, cost)
	s.counts.left++
	if place {
		s.places.taken++
	}
}

// dismissLocked takes a call out of the line with a refusal. The caller of
// dismissLocked dispatches afterwards.
func (s *Shaper) dismissLocked(c *call, reason error, delay time.Duration) {
	s.line.remove(c)
	if s.refusals == nil {
		s.refusals = make(map[*call]error)
	}
	s.refusals[c] = s.refuseLocked(reason, c.cost, delay)
	s.alarm.forget(c)
	c.answer(true)
}
