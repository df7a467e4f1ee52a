package oracle

import (
	"math/big"
	"slices"
)

// Outcome is how a call ended.
type Outcome int

// The outcomes of a call.
const (
	Waiting Outcome = iota
	Left
	Cancelled
	Refused
)

// A Call is one call in the model.
type Call struct {
	Outcome Outcome
	At      *big.Rat // when it left

	cost     int64
	arrived  *big.Rat
	deadline *big.Rat // nil: none
}

// Line is a waiting line in front of one GCRA, simulated event by event on the
// rational time line. Events must come in the order of time.
type Line struct {
	GCRA     GCRA
	Capacity int

	// Ambiguous is set when an event falls into the very nanosecond in which a
	// call leaves or TAT lies, so that more than one outcome is right.
	Ambiguous bool

	now       *big.Rat
	waiting   []*Call
	paused    bool
	openAt    *big.Rat
	reopening bool
}

// NewLine returns an empty line at instant 0.
func NewLine(g GCRA, capacity int) *Line {
	return &Line{GCRA: g, Capacity: capacity, now: new(big.Rat), openAt: new(big.Rat)}
}

// Waiting returns how many calls wait.
func (l *Line) Waiting() int { return len(l.waiting) }

// Advance lets time pass until t: calls leave when they are due and are cancelled
// when their deadline comes first.
func (l *Line) Advance(t *big.Rat) {
	for len(l.waiting) > 0 {
		next, leaves := t, false
		if !l.paused {
			head := l.waiting[0]
			at := latest(l.GCRA.Due(latest(head.arrived, l.openAt), head.cost), l.now)
			if at.Cmp(next) <= 0 {
				next, leaves = at, true
			}
		}
		expired := -1
		for i, c := range l.waiting {
			if c.deadline != nil && c.deadline.Cmp(next) < 0 {
				next, expired = c.deadline, i
			}
		}
		switch {
		case expired >= 0:
			l.remove(l.waiting[expired], Cancelled)
		case leaves:
			l.Ambiguous = l.Ambiguous || new(big.Rat).SetInt(Ceil(next)).Cmp(t) >= 0 && next.Cmp(l.now) > 0
			l.leave(next)
		default:
			l.arriveAt(t)
			return
		}
		l.now = next
	}
	l.arriveAt(t)
}

func (l *Line) arriveAt(t *big.Rat) {
	l.now = latest(l.now, t)
	l.Ambiguous = l.Ambiguous || l.GCRA.Blurs(t)
}

func (l *Line) leave(at *big.Rat) {
	head := l.waiting[0]
	l.charge(l.GCRA.Due(latest(head.arrived, l.openAt), head.cost), at, head.cost)
	head.At = at
	l.remove(head, Left)
}

// charge applies the rule for the first call behind a closed gate: it leaves at
// once, and the next unit T later, so its cost is all that the bucket holds then.
func (l *Line) charge(due, left *big.Rat, cost int64) {
	g := &l.GCRA
	if l.reopening {
		l.reopening = false
		floor := new(big.Rat).Add(l.openAt, g.units(g.Burst-min(cost, g.Burst)))
		if g.TAT == nil || g.TAT.Cmp(floor) < 0 {
			g.TAT = floor
		}
	}
	g.Leave(due, left, cost)
}

// Arrive adds a call at t, which may leave at once or be refused.
func (l *Line) Arrive(t *big.Rat, cost int64, deadline *big.Rat) *Call {
	l.Advance(t)
	c := &Call{cost: cost, arrived: t, deadline: deadline}
	if len(l.waiting) == 0 && !l.paused && l.openAt.Cmp(t) <= 0 && l.GCRA.Due(t, cost).Cmp(t) <= 0 {
		l.charge(t, t, cost)
		c.Outcome, c.At = Left, t
		return c
	}
	var ahead int64
	for _, w := range l.waiting {
		ahead += w.cost
	}
	backlog := new(big.Rat).Sub(l.predict(t, ahead, cost), t)
	switch {
	case len(l.waiting) >= l.Capacity,
		backlog.Cmp(l.GCRA.units(int64(l.Capacity))) >= 0,
		l.late(c, ahead):
		c.Outcome = Refused
		return c
	}
	l.waiting = append(l.waiting, c)
	return c
}

// predict returns when a call of the given cost leaves after those ahead. Whatever
// is due is due by TAT, so a line that does not run dry moves TAT by T per unit.
func (l *Line) predict(t *big.Rat, ahead, cost int64) *big.Rat {
	g := l.GCRA
	if ahead > 0 {
		if g.TAT == nil || g.TAT.Cmp(t) < 0 {
			g.TAT = t
		}
		g.TAT = new(big.Rat).Add(g.TAT, g.units(ahead))
	}
	return latest(t, g.Due(t, cost))
}

// late reports whether a call cannot leave before its deadline.
func (l *Line) late(c *Call, ahead int64) bool {
	return c.deadline != nil && l.predict(latest(l.now, l.openAt), ahead, c.cost).Cmp(c.deadline) >= 0
}

// Cancel removes a call at t if it waits.
func (l *Line) Cancel(t *big.Rat, c *Call) {
	l.Advance(t)
	if c.Outcome == Waiting {
		l.remove(c, Cancelled)
	}
	l.Advance(t)
}

// SetInterval changes the rate at t.
func (l *Line) SetInterval(t, interval *big.Rat) {
	l.Advance(t)
	l.GCRA.SetInterval(t, interval)
	l.dismissLate()
	l.Advance(t)
}

// Pause stops the line at t.
func (l *Line) Pause(t *big.Rat) {
	l.Advance(t)
	l.paused = true
}

// Resume lifts pause and hold at t.
func (l *Line) Resume(t *big.Rat) {
	l.Advance(t)
	if l.paused || l.openAt.Cmp(t) > 0 {
		l.paused, l.openAt, l.reopening = false, t, true
	}
	l.Advance(t)
}

// Hold stops the line from t until the given instant.
func (l *Line) Hold(t, until *big.Rat) {
	l.Advance(t)
	if until.Cmp(latest(t, l.openAt)) > 0 {
		l.openAt, l.reopening = until, true
		l.dismissLate()
	}
	l.Advance(t)
}

func (l *Line) dismissLate() {
	var ahead int64
	for _, c := range slices.Clone(l.waiting) {
		if l.late(c, ahead) {
			l.remove(c, Refused)
		} else {
			ahead += c.cost
		}
	}
}

func (l *Line) remove(c *Call, o Outcome) {
	i := slices.Index(l.waiting, c)
	l.waiting = slices.Delete(l.waiting, i, i+1)
	c.Outcome = o
}

func latest(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return b
	}
	return a
}
