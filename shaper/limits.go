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
	sched scheduler.Scheduler // all schedules together
	gcra  *scheduler.GCRA     // the same, if that is all that there is to it

	// since: no call under these limits was due before it. A call that claims to be late
	// cannot claim more. It moves on with each departure, each charge, and each head that
	// went without leaving.
	since time.Time

	*terms // never nil; what changes them asks for mine first
}

// terms are the part of limits that is the same for all keys of a rate, but for a few. So
// those share them, until one is held, say, or has a call in flight.
type terms struct {
	shared bool
	mixed  *mixed         // nil: there is one schedule
	base   scheduler.Rate // that the limits were made with
	full   scheduler.Rate // as set; the pacer runs at a share of it
	share  share

	gate      gate
	places    places
	debt      int64         // see crowded
	tolerance time.Duration // J of the schedule; 0 if it tells none
}

// mixed are several schedules.
type mixed struct {
	pacer scheduler.Scheduler   // the one that SetRate changes
	more  []scheduler.Scheduler // those beside it
}

func newLimits(pacer scheduler.Scheduler, more []scheduler.Scheduler, inFlight int64) limits {
	l := limits{sched: pacer, terms: newTerms(pacer, inFlight)}
	if len(more) > 0 {
		l.sched = scheduler.All(append([]scheduler.Scheduler{pacer}, more...)...)
		l.mixed = &mixed{pacer, more}
		l.tolerance = toleranceOf(l.sched)
	}
	l.gcra, _ = l.sched.(*scheduler.GCRA)
	return l
}

func newTerms(pacer scheduler.Scheduler, inFlight int64) *terms {
	r := rateOf(pacer)
	return &terms{base: r, full: r, share: whole, places: places{most: inFlight}, debt: 1, tolerance: toleranceOf(pacer)}
}

// mine returns the terms to be changed: those of these limits alone.
func (l *limits) mine() *terms {
	if l.shared {
		own := *l.terms
		own.shared = false
		l.terms = &own
	}
	return l.terms
}

// renew has the terms be as good as those of the class.
func (l *limits) renew(c *rateClass) {
	if l.shared {
		l.terms = c.terms
	} else {
		*l.terms = *c.terms
		l.shared = false
	}
}

// pacer returns the schedule that SetRate changes.
func (l *limits) pacer() scheduler.Scheduler {
	if l.mixed == nil {
		return l.sched
	}
	return l.mixed.pacer
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
	l.owe(debtOf(cost, l.gcra))
	if place {
		l.mine().places.taken++
	}
	return reopened
}

// charge records what has left without asking.
func (l *limits) charge(now time.Time, cost int64) {
	l.sched.Commit(now, now, cost)
	l.passed(now)
	l.owe(cost)
}

// owe notes the cost of what left last, as crowded counts it.
func (l *limits) owe(debt int64) {
	if l.debt != debt {
		l.mine().debt = debt
	}
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
	most := l.gcra.For(room * n)
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
	if l.mixed == nil {
		return appendEach(nil, l.sched)
	}
	return appendEach(appendEach(nil, l.mixed.pacer), l.mixed.more...)
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
