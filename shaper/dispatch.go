package shaper

import "time"

// dispatch lets every call leave that is due. It is what timers call; one that fires
// for nothing, because it was stopped too late, does no harm.
func (s *Shaper) dispatch() {
	s.lock()
	defer s.unlock()
	now := s.time.now()
	head := s.line.head
	came := head != nil && !s.nextDue.After(now) && !s.standsLocked()
	s.dispatchLocked(now)
	if came && s.line.head == head {
		s.putOff++
	}
}

// A schedule may put the head off when its instant has come, as it has closed times or knows
// more by then. One that breaks its contract may do so without end, each time by a moment;
// from some number of times on it is asked again no sooner than after a pause.
const (
	mostPutOff  = 100
	putOffPause = time.Millisecond
)

// waitLocked returns the wait for which the alarm is set.
func (s *Shaper) waitLocked(wait time.Duration) time.Duration {
	if s.putOff < mostPutOff {
		return wait
	}
	return max(wait, putOffPause)
}

// dispatchLocked is the one place where waiting ends: look at the head, ask the
// schedule, let it leave or set the alarm. Whatever changes the line, the schedule
// or the gate calls it afterwards.
func (s *Shaper) dispatchLocked(now time.Time) {
	s.unusedLocked(now)
	first := true
	for c := s.line.head; c != nil; c = s.line.head {
		due, ok := s.headDueLocked(now)
		if !ok {
			break // until the gate opens or a place is released
		}
		s.nextDue = due
		if wait := due.Sub(now); wait > 0 {
			s.alarm.set(c, s.waitLocked(wait))
			return
		}
		s.departLocked(due, now, c.cost, c.place)
		if first {
			s.late.woken(due, now)
			first = false
		}
		s.line.remove(c)
		s.alarm.forget(c)
		c.answer(false)
	}
	s.alarm.stop()
	s.life.noteLocked(s.line.len)
}

// standsLocked reports whether the head waits for no instant, but for a resume or a place.
func (s *Shaper) standsLocked() bool {
	return s.gate.paused || s.line.head.place && !s.places.free()
}

// headDueLocked returns when the head is due. It returns false if no instant can be told,
// as the head waits for a resume or a place.
func (s *Shaper) headDueLocked(now time.Time) (due time.Time, ok bool) {
	if s.standsLocked() {
		return time.Time{}, false
	}
	c := s.line.head
	// Ask for the time since when it could leave, not for now: if the timer was late, the
	// schedule shall know by how much.
	due = s.sched.Next(s.earliestLocked(s.time.epoch.Add(c.arrived), c.place), 0, c.cost)
	if s.gcra == nil && due.Before(now) {
		// What could leave then may not leave at present, if the schedule has closed since.
		if open := s.sched.Next(now, 0, c.cost); open.After(now) {
			s.late.passed(now)
			return open, true
		}
	}
	return due, true
}

// earliestLocked returns the first instant, not before t, at which a call could leave
// for all but the schedule. It is not asked while paused, or while there is no place.
func (s *Shaper) earliestLocked(t time.Time, place bool) time.Time {
	t = later(later(t, s.gate.openAt), s.late.since)
	if place {
		t = later(t, s.places.freedAt)
	}
	return t
}

// departLocked charges what leaves.
func (s *Shaper) departLocked(due, now time.Time, cost int64, place bool) {
	s.passGateLocked(cost)
	s.sched.Commit(due, now, cost)
	s.late.left(due, now)
	s.putOff = 0
	s.debt = debtOf(cost, s.gcra)
	s.counts.leave(cost)
	if place {
		s.places.taken++
	}
}

// withdrawLocked takes a call out of the line that does not leave. The caller dispatches
// afterwards.
func (s *Shaper) withdrawLocked(c *call, now time.Time) {
	s.unusedLocked(now)
	if s.line.head == c {
		// The calls behind it were not late before now, unless it was itself.
		settled := now
		if due, ok := s.headDueLocked(now); ok && due.Before(now) {
			settled = due
		}
		s.late.passed(settled)
	}
	s.line.remove(c)
	s.alarm.forget(c)
}

// dismissLocked takes a call out of the line with a refusal. The caller dispatches
// afterwards.
func (s *Shaper) dismissLocked(c *call, now time.Time, reason error, delay time.Duration) {
	s.withdrawLocked(c, now)
	if s.refusals == nil {
		s.refusals = make(map[*call]error)
	}
	s.refusals[c] = s.refuseLocked(reason, c.cost, delay)
	c.answer(true)
}
