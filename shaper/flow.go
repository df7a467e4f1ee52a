package shaper

import (
	"time"

	"github.com/sluice-go/sluice/shaper/internal/fair"
)

// A flow is the calls of one key that stand in a line, and limits of their own beside those
// of the line. Each line has one flow without such limits: of the calls of its Shaper. A key
// of a Group that is not under a Shaper is that of a line of its own.
type flow struct {
	line  *line
	own   *limits // nil: no limits but those of the line
	party *party  // of a Group under a Shaper
	owner owner   // nil: there is none to be told
	calls calls

	keyOrder
}

// An owner of a flow is told when one of its calls has its answer that no caller waits for.
type owner interface{ answered() }

// keyOrder is where a key stands among those of its line; see keys.
type keyOrder struct {
	tags   *fair.Flow[flow] // nil: none yet; see shares
	weight int64
	until  time.Duration // when it becomes free, if it is blocked until then, since the epoch
	from   time.Duration // when its head arrived, or the key became free of a hold later
	turn   int64         // of its head for a place of the Group, by weight; see party

	atFree, atBlocked, atCrowd, atStanding int32 // where it is in each of the queues

	// weighted: the weight was set by hand.
	weighted bool
	ready    bool // it is free and its head needs a place; see party
	kept     bool // something was set by hand that the key is remembered for
	state    keyState
	putOff   uint8 // how often its head was, when the instant had come, since one left
}

// bounds are what a line, or a key, may have waiting.
type bounds struct {
	capacity   int
	maxDelay   time.Duration
	maxBacklog time.Duration
}

// lock takes the lock of the key's line.
func (f *flow) lock() *line {
	f.made()
	f.line.lock()
	return f.line
}

// limits returns those that are the key's own, and those of the line if it has none: what a
// change of the key changes.
func (f *flow) limits() *limits {
	if f.own != nil {
		return f.own
	}
	return &f.line.limits
}

// nextLocked returns the first instant, not before t, at which the schedules of the key and
// of the line allow a cost.
func (f *flow) nextLocked(t time.Time, cost int64) time.Time {
	l := f.line
	if f.own == nil {
		return l.sched.Next(t, 0, cost)
	}
	for range mostRounds {
		due := l.sched.Next(f.own.sched.Next(t, 0, cost), 0, cost)
		if !due.After(t) || f.own.gcra != nil && l.gcra != nil {
			return due
		}
		t = due
	}
	return t.Add(never)
}

// mostRounds bounds how often two schedules with closed times are asked in turn.
const mostRounds = 1000

// openLocked reports whether a call may leave now for all but the schedules.
func (f *flow) openLocked(now time.Time, place bool) bool {
	return f.line.open(now, place) && (f.own == nil || f.own.open(now, place)) && !f.stands(place)
}

// earliestLocked returns the first instant, not before t, at which a call could leave for
// all but the schedules. It is not asked where calls stand.
func (f *flow) earliestLocked(t time.Time, place bool) time.Time {
	t = f.line.earliest(t, place)
	if f.own != nil {
		t = f.own.earliest(t, place)
	}
	if place && f.party != nil {
		t = later(t, f.party.places.freedAt)
	}
	return t
}

// freeLocked returns from when on the key's own limits allow its head. It returns false if
// no instant can be told, as the head waits for a resume or a place of the key.
func (f *flow) freeLocked(now time.Time) (at time.Time, ok bool) {
	c := f.calls.head
	at = f.line.time.epoch.Add(c.arrived)
	switch {
	case f.own == nil:
		return at, true
	case f.own.stand(c.place) || f.stands(c.place):
		return at, false
	}
	if c.place && f.party != nil {
		at = later(at, f.party.places.freedAt)
	}
	return f.own.due(f.own.earliest(at, c.place), now, c.cost), true
}

// mayCloseLocked reports whether limits of the key may forbid what they have allowed.
func (f *flow) mayCloseLocked() bool { return f.own != nil && f.own.gcra == nil }

// foreseeLocked predicts when a call of the key leaves that has ahead units of the key in
// front of it. Other keys are left out: it is a lower bound where there are any.
func (f *flow) foreseeLocked(now time.Time, ahead, cost int64) (due time.Time) {
	first := cost
	if ahead > 0 {
		first = f.calls.head.cost
	}
	due = f.line.foresee(now, ahead, cost, first)
	if f.own != nil {
		due = later(due, f.own.foresee(now, ahead, cost, first))
	}
	return due
}

// backlogLocked returns what foreseeLocked would, were nothing held, from what it has returned:
// a hold is no backlog, as it does not mean that too much was asked for.
func (f *flow) backlogLocked(now, due time.Time, ahead, cost int64) time.Time {
	l := f.line
	if !l.gate.shut() && !f.limits().gate.shut() {
		return due
	}
	due = l.sched.Next(now, ahead, cost)
	if f.own != nil {
		due = later(due, f.own.sched.Next(now, ahead, cost))
	}
	return due
}

// pushLocked has a call join.
func (f *flow) pushLocked(c *call) {
	l := f.line
	l.seq++
	c.seq = l.seq
	f.calls.push(c)
	l.len++
	l.units += c.cost
	if c.deadline != noDeadline {
		l.dated++
	}
	if f.party != nil {
		f.party.waiting++
		if f.apart() {
			l.apart++
		}
	}
}

// removeLocked takes a call out.
func (f *flow) removeLocked(c *call) {
	l := f.line
	f.calls.remove(c)
	l.alarm.forget(c)
	l.unsettled.forgetLocked(c)
	l.len--
	l.units -= c.cost
	if c.deadline != noDeadline {
		l.dated--
	}
	if f.party != nil {
		f.party.waiting--
		if f.apart() {
			l.apart--
		}
		f.party.life.noteLocked(f.party.waiting)
	}
}

// apart reports whether calls of the key take no room of the line's.
func (f *flow) apart() bool { return f.party != nil && f.party.room > 0 }

// changedLocked is called when the key's limits have changed, which may be those of the
// line, and lets leave what may leave by that.
func (f *flow) changedLocked(now time.Time) {
	if f.own != nil {
		f.line.placeLocked(f, now, changed)
	}
	f.line.dispatchLocked(now)
}

// keep has the key remembered for good.
func (f *flow) keep() {
	l := f.lock()
	defer l.unlock()
	f.kept = true
}
