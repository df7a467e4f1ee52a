package shaper

import (
	"math"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// limits are what may forbid a departure: a schedule, or several, a gate, places in flight,
// and the lateness that may be claimed. A Shaper has such, and so has each key of a Group.
// They know no line and no clock: time is an argument. What is asked about a call is its
// cost, and whether it will be in flight.
type limits struct {
	sched  scheduler.Scheduler   // all schedules together
	gcra   *scheduler.GCRA       // the same, if that is all that there is to it
	pacer  scheduler.Scheduler   // the one that SetRate changes
	pacing *scheduler.GCRA       // the same, if it is one
	more   []scheduler.Scheduler // those beside it
	base   scheduler.Rate        // that the limits were made with
	full   scheduler.Rate        // as set; the pacer runs at a share of it
	share  share

	gate   gate
	places places
	debt   int64 // see crowded

	// since: no call under these limits was due before it. A call that claims to be late
	// cannot claim more. It moves on with each departure, each charge, and each head that
	// went without leaving.
	since     time.Time
	tolerance time.Duration // J of the schedule; 0 if it tells none
}

func newLimits(pacer scheduler.Scheduler, more []scheduler.Scheduler, inFlight int64) limits {
	l := limits{sched: pacer, pacer: pacer, more: more, share: whole, debt: 1, places: places{most: inFlight}}
	if len(more) > 0 {
		l.sched = scheduler.All(append([]scheduler.Scheduler{pacer}, more...)...)
	}
	l.gcra, _ = l.sched.(*scheduler.GCRA)
	l.pacing, _ = pacer.(*scheduler.GCRA)
	l.base = rateOf(pacer)
	l.full = l.base
	l.tolerance = toleranceOf(l.sched)
	return l
}

// toleranceOf returns the tolerance of a schedule, 0 if it tells none.
func toleranceOf(s scheduler.Scheduler) time.Duration {
	if tolerant, ok := s.(scheduler.Tolerant); ok {
		return max(tolerant.Tolerance(), 0)
	}
	return 0
}

// stand reports whether a call waits for no instant, but for a resume or a place.
func (l *limits) stand(place bool) bool { return l.gate.paused || place && !l.places.free() }

// open reports whether a call may leave now for all but the schedule.
func (l *limits) open(now time.Time, place bool) bool {
	return l.gate.open(now) && !(place && !l.places.free())
}

// earliest returns the first instant, not before t, at which a call could leave for all but
// the schedule. It is not asked where calls stand.
func (l *limits) earliest(t time.Time, place bool) time.Time {
	t = later(later(t, l.gate.openAt), l.since)
	if place {
		t = later(t, l.places.freedAt)
	}
	return t
}

// due returns when a call is due that could leave since t. What could leave then may not
// leave at present, if the schedule has closed since.
func (l *limits) due(t, now time.Time, cost int64) time.Time {
	due := l.sched.Next(t, 0, cost)
	if l.gcra == nil && due.Before(now) {
		if open := l.sched.Next(now, 0, cost); open.After(now) {
			l.passed(now)
			return open
		}
	}
	return due
}

// leave charges what leaves, with an id if it may be settled. It reports whether that is the
// first call behind a gate.
func (l *limits) leave(id uint64, due, now time.Time, cost int64, place bool) (reopened bool) {
	reopened = l.passGate(cost)
	l.commit(id, due, now, cost)
	l.since = later(due, now.Add(-l.tolerance))
	l.debt = debtOf(cost, l.gcra)
	if place {
		l.places.taken++
	}
	return reopened
}

// charge records what has left without asking.
func (l *limits) charge(now time.Time, cost int64) {
	l.sched.Commit(now, now, cost)
	l.passed(now)
	l.debt = cost
}

// passed notes that all that was due before now has been settled.
func (l *limits) passed(now time.Time) { l.since = later(l.since, now) }

// foresee predicts when a call leaves that has ahead units in front of it, of which the
// first call is of the given cost. If the gate is paused, that is as if it opened now, and a
// place counts as free.
func (l *limits) foresee(now time.Time, ahead, cost, first int64) time.Time {
	opens := later(now, l.gate.openAt)
	return l.gate.foresee(l.sched, opens, first).Next(opens, ahead, cost)
}

// crowded reports whether as many calls wait as may. A [scheduler.GCRA] may owe time beyond
// its burst, from calls that have left; that counts as so many calls of the cost of the
// latest one. So a burst of calls on an idle Shaper is cut where the line would be full had
// all of them joined it.
func (l *limits) crowded(now time.Time, waiting, capacity int) bool {
	room := int64(capacity - waiting)
	if room <= 0 || l.gcra == nil {
		return room <= 0
	}
	n := l.debt
	if n > math.MaxInt64/room {
		return false // no debt is that long
	}
	most := l.gcra.Rate().For(room * n)
	return 0 < most && most < never && l.gcra.Next(now, 0, n).Sub(now) >= most
}

// debtOf returns the cost that counts as the latest one when a call has left. One within
// the burst leaves only once all debts beyond the burst are paid, and its own cannot be
// told from that of a single unit.
func debtOf(cost int64, g *scheduler.GCRA) int64 {
	if g == nil || cost <= g.Burst() {
		return 1
	}
	return cost
}

// schedules returns the pacer and all limits, those within a [scheduler.All] one by one.
func (l *limits) schedules() []scheduler.Scheduler {
	return appendEach(appendEach(nil, l.pacer), l.more...)
}

func appendEach(all []scheduler.Scheduler, more ...scheduler.Scheduler) []scheduler.Scheduler {
	for _, limit := range more {
		if several, ok := limit.(interface{ Limits() []scheduler.Scheduler }); ok && len(several.Limits()) > 0 {
			all = appendEach(all, several.Limits()...)
		} else {
			all = append(all, limit)
		}
	}
	return all
}
