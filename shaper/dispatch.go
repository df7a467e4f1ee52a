package shaper

import "time"

// dispatch lets everybody leave who is due. It is what timers call; one that fires
// for nothing, because it was stopped too late, does no harm.
func (s *Shaper) dispatch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dispatchLocked(s.time.now())
}

// dispatchLocked is the one place where waiting ends: look at the head, ask the
// schedule, let it leave or arm its timer. Whatever changes the line, the schedule
// or the gate calls it afterwards.
//
// The caller whose timer fires runs it, so one goroutine is woken for each
// departure and not a dispatcher besides.
func (s *Shaper) dispatchLocked(now time.Time) {
	for c := s.line.head; c != nil && !s.gate.paused; c = s.line.head {
		// Ask for the time since when it could leave, not for now: if the timer
		// was late, the schedule shall know by how much.
		due := s.sched.Next(later(c.arrived, s.gate.openAt), 0, c.cost)
		if wait := due.Sub(now); wait > 0 {
			s.nextDue = due
			s.armLocked(c, wait)
			return
		}
		s.departLocked(due, now, c.cost)
		s.line.remove(c)
		c.answer(nil)
	}
	s.disarmLocked()
	s.life.noteLocked(s.line.len)
}

// departLocked charges what leaves.
func (s *Shaper) departLocked(due, now time.Time, cost int64) {
	s.gate.passLocked(s.sched, cost)
	s.sched.Commit(due, now, cost)
	s.lag = min(now.Sub(due), s.tolerance)
	s.counts.left++
}

// dismissLocked takes a call out of the line with a refusal. The caller of
// dismissLocked dispatches afterwards.
func (s *Shaper) dismissLocked(c *call, reason error, delay time.Duration) {
	s.line.remove(c)
	c.answer(s.refuseLocked(reason, c.cost, delay))
}

// armLocked makes the timer of the head, and no other, fire after wait.
func (s *Shaper) armLocked(head *call, wait time.Duration) {
	if s.armed != head {
		s.disarmLocked()
	}
	if s.time.clock == nil {
		s.armed = head
		head.timer.Reset(wait)
		return
	}
	// A mock's timer blocks if it is reset after a firing that nobody read, so a
	// user's clock gets a new one each time, with nothing to read.
	s.disarmLocked()
	s.alarm = s.time.clock.AfterFunc(wait, s.dispatch)
}

func (s *Shaper) disarmLocked() {
	if s.armed != nil {
		s.armed.timer.Stop()
		s.armed = nil
	}
	if s.alarm != nil {
		s.alarm.Stop()
		s.alarm = nil
	}
}

// newCall returns a call for the stock of this Shaper.
func (s *Shaper) newCall() *call {
	c := &call{ready: make(chan struct{}, 1)}
	if s.time.clock == nil {
		c.timer = time.NewTimer(0)
		c.timer.Stop()
	}
	return c
}
