package oracle

import (
	"math/big"
	"slices"
)

// Arrive adds a call at t, which may leave at once or be refused.
func (l *Line) Arrive(t *big.Rat, a Ask) *Call {
	l.Advance(t)
	l.pass()
	c := &Call{Ask: a, arrived: t}
	place, ahead := l.placeOf(c)
	switch {
	case l.leavesAtOnce(c):
		c.Outcome = Left
	case l.crowded(), a.Deadline != nil && l.foresee(c, ahead).Cmp(a.Deadline) >= 0:
		c.Outcome = Refused
	default:
		l.waiting = slices.Insert(l.waiting, place, c)
		if place == 0 {
			l.pass() // it may need less than the one that was next
		}
	}
	return c
}

// placeOf returns where a newcomer stands in the line, which is in the order of leaving, and
// how many units stand before it.
func (l *Line) placeOf(c *Call) (place int, ahead int64) {
	for i, w := range l.waiting {
		if order := l.rank(c).Cmp(l.rank(w)); order < 0 || order == 0 && c.Class < w.Class {
			return i, ahead
		}
		ahead += w.Cost
	}
	return len(l.waiting), ahead
}

// rank is the arrival, later by Overtake for each class below the most urgent.
func (l *Line) rank(c *Call) *big.Rat {
	if l.Overtake == nil {
		return c.arrived
	}
	by := new(big.Rat).Mul(l.Overtake, Instant(int64(c.Class)))
	return by.Add(by, c.arrived)
}

// Allow reports whether a call may leave at t, and lets it leave then.
func (l *Line) Allow(t *big.Rat, cost int64) bool {
	l.Advance(t)
	l.pass()
	return l.leavesAtOnce(&Call{Ask: Ask{Cost: cost}, arrived: t})
}

// Delay returns what a call of one unit would wait that comes at t.
func (l *Line) Delay(t *big.Rat) *big.Rat {
	l.Advance(t)
	l.pass()
	c := &Call{Ask: Ask{Cost: 1, Class: max(l.Classes-1, 0)}, arrived: t}
	_, ahead := l.placeOf(c)
	return new(big.Rat).Sub(l.foresee(c, ahead), t)
}

// leavesAtOnce lets a newcomer leave that need not wait.
func (l *Line) leavesAtOnce(c *Call) bool {
	if len(l.waiting) > 0 || l.paused || c.Place && l.full() || l.due(c, l.now).Cmp(l.now) > 0 {
		return false
	}
	l.leave(c, l.claim(c))
	return true
}

// claim returns when a call is due that leaves now and need not wait. Had the line left on
// time, it would have come sooner by as much. If no call could have left between the
// latest departure and then, it is due when one could. Otherwise the line had run dry, and
// no call after it can claim anything either.
func (l *Line) claim(c *Call) *big.Rat {
	since := latest(l.openAt, l.since)
	if c.Place {
		since = latest(since, l.freedAt)
	}
	sooner := latest(since, new(big.Rat).Sub(l.now, l.lag))
	if due := l.next(since, c.Cost); !l.reopening && l.lag.Sign() > 0 && due.Cmp(sooner) > 0 {
		return due
	}
	l.lag = new(big.Rat)
	return l.now
}

// crowded reports whether the line has no room: it holds as many calls as it may, counting
// what is owed beyond the burst as calls of the cost of the last one that left.
func (l *Line) crowded() bool {
	calls := Instant(int64(len(l.waiting)))
	if g := &l.GCRA; g.TAT != nil && g.T.Sign() > 0 {
		owed := new(big.Rat).Sub(g.TAT, l.now)
		owed.Sub(owed, g.units(g.Burst-min(l.latest, g.Burst)))
		if owed.Sign() > 0 {
			calls.Add(calls, owed.Quo(owed, g.units(l.latest)))
		}
	}
	return calls.Cmp(Instant(int64(l.Capacity))) >= 0
}

// predict returns when a call of the given cost leaves after those ahead, if nothing
// holds them. Whatever is due is due by TAT, so a line that does not run dry moves
// TAT by T per unit.
func predict(g GCRA, t *big.Rat, ahead, cost int64) *big.Rat {
	if ahead > 0 {
		if g.TAT == nil || g.TAT.Cmp(t) < 0 {
			g.TAT = t
		}
		g.TAT = new(big.Rat).Add(g.TAT, g.units(ahead))
	}
	return latest(t, g.Due(t, cost))
}

// foresee returns when a call would leave behind so many units of the line. A pause counts
// as if it ended now, and a place as if one were free.
func (l *Line) foresee(c *Call, ahead int64) *big.Rat {
	g, opens := l.GCRA, latest(l.now, l.openAt)
	if l.paused || l.reopening {
		first := c
		if ahead > 0 {
			first = l.waiting[0]
		}
		since := l.openAt
		if l.paused {
			since = opens
		}
		g.TAT = l.evened(since, first.Cost)
	}
	return predict(g, opens, ahead, c.Cost)
}
