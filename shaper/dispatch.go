package shaper

import "time"

// dispatch lets every call leave that is due. It is what timers call; one that fires
// for nothing, because it was stopped too late, does no harm.
func (l *line) dispatch() {
	l.lock()
	defer l.unlock()
	now := l.time.now()
	var next *call
	if l.head != nil && !l.nextDue.After(now) && !l.stand(l.head.calls.head.place) {
		next = l.head.calls.head
	}
	l.dispatchLocked(now)
	if next != nil && l.head != nil && l.head.calls.head == next {
		l.putOff++
	}
}

// dispatchLocked is the one place where waiting ends. Whatever changes the line, the limits
// or the time calls it afterwards.
func (l *line) dispatchLocked(now time.Time) {
	l.passLocked(now)
	first := true
	for {
		// Who is next is asked each time a call would leave: of the calls that their keys allow
		// now, whatever the limits of the line say.
		f := l.chooseLocked(now)
		if f == nil || l.stand(f.calls.head.place) {
			l.nextDue = l.time.epoch.Add(never)
			break // until a key allows a call, a resume, or a release
		}
		// The head waits for all limits together, and the others behind it: no call that
		// costs less slips past it.
		c := f.calls.head
		due := f.dueLocked(now)
		l.nextDue = due
		if due.After(now) {
			break
		}
		// All of them are charged what leaves, as of when it was due, and told how late it is.
		f.departLocked(due, now, c.cost, c.place, l.unsettled.waiting[c])
		if first {
			l.lag.woken(due, now, l.tolerance)
			first = false
		}
		f.removeLocked(c)
		l.leftLocked(f)
		l.placeLocked(f, now, left)
		l.answerLocked(f, c, nil)
	}
	l.setAlarmLocked(now)
	l.life.noteLocked(l.len)
}

// dueLocked returns when the head of a free key is due, which stands for nothing.
func (f *flow) dueLocked(now time.Time) time.Time {
	l, c := f.line, f.calls.head
	// It is asked for the time since when the head could leave, not for now: if the timer was
	// late, the schedules shall know by how much.
	since := f.earliestLocked(l.time.epoch.Add(c.arrived), c.place)
	if f.own == nil {
		return l.due(since, now, c.cost)
	}
	due := f.nextLocked(since, c.cost)
	if f.own.gcra != nil && l.gcra != nil {
		return due
	}
	// With closed times the two may not meet where each of them was open. The key is open now.
	if own := f.own.sched.Next(since, 0, c.cost); !own.After(now) {
		since = own
	} else {
		since = now
	}
	switch ofLine := l.due(since, now, c.cost); {
	case ofLine.After(now):
		return ofLine
	case due.After(now):
		return now
	}
	return due
}

// setAlarmLocked sets the alarm for when a key allows its head, or the head of the line is
// due, whichever comes first.
func (l *line) setAlarmLocked(now time.Time) {
	var next *call
	wait := never
	if l.head != nil && !l.stand(l.head.calls.head.place) {
		next, wait = l.head.calls.head, l.nextDue.Sub(now)
	}
	if at, ok := l.unblocksLocked(); ok && !l.gate.paused {
		if until := at.Sub(now); next == nil || until < wait {
			next, wait = nil, until
		}
	}
	if next == nil && wait == never {
		l.alarm.stop()
		return
	}
	l.alarm.set(next, l.waitLocked(wait))
}

// A schedule may put the head off when its instant has come, as it has closed times or knows
// more by then. One that breaks its contract may do so without end, each time by a moment;
// from some number of times on it is asked again no sooner than after a pause.
const (
	mostPutOff  = 100
	putOffPause = time.Millisecond
)

// waitLocked returns the wait for which the alarm is set.
func (l *line) waitLocked(wait time.Duration) time.Duration {
	if l.putOff < mostPutOff {
		return wait
	}
	return max(wait, putOffPause)
}

// departLocked charges what leaves.
func (f *flow) departLocked(due, now time.Time, cost int64, place bool, d *Departure) {
	l := f.line
	id := l.unsettled.opensLocked(f, d, now)
	if l.leave(id, due, now, cost, place) {
		l.lag.end() // nor has a caller come back meanwhile that was late before
		l.reopenedLocked(cost)
	}
	if f.own != nil {
		f.own.leave(id, due, now, cost, place)
	}
	if place && f.party != nil {
		f.party.takeLocked(f, cost)
	}
	l.putOff = 0
	f.countLocked(departed, cost)
}

// withdrawLocked takes a call out of the line that does not leave. The caller dispatches
// afterwards.
func (f *flow) withdrawLocked(c *call, now time.Time) {
	l := f.line
	l.passLocked(now)
	wasHead := f.calls.head == c
	if wasHead {
		l.forsakeLocked(f, now)
	}
	f.removeLocked(c)
	if wasHead {
		l.placeLocked(f, now, changed)
	} else {
		l.behindLocked(f, c, false)
	}
}

// forsakeLocked is called when the head of a key goes without leaving. The calls behind it
// were not late before now, unless it was itself.
func (l *line) forsakeLocked(f *flow, now time.Time) {
	place := f.calls.head.place
	if f.own != nil {
		settled := now
		if at, ok := f.freeLocked(now); ok && at.Before(now) {
			settled = at
		}
		f.own.passed(settled)
	}
	if l.head == f {
		settled := now
		if !l.stand(place) && (f.own == nil || !f.own.stand(place)) && !f.stands(place) {
			if due := f.dueLocked(now); due.Before(now) {
				settled = due
			}
		}
		l.passed(settled)
	}
}

// dismissLocked takes a call out of the line with a refusal. The caller dispatches
// afterwards.
func (f *flow) dismissLocked(c *call, now time.Time, reason error, delay time.Duration) {
	f.withdrawLocked(c, now)
	f.line.answerLocked(f, c, f.refuseLocked(reason, c.cost, c.class, delay))
}
