package oracle

import (
	"math/big"
	"slices"
	"time"
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
// rational time line. Events must come in the order of time, on whole nanoseconds.
type Line struct {
	GCRA     GCRA
	Capacity int

	// Late is how late the timer fires that was set for an instant, in ns. It must
	// depend on that instant alone. Nil means never.
	Late func(due int64) time.Duration

	// Ambiguous is set when events meet in the very nanosecond in which a call
	// leaves or TAT lies, so that more than one outcome is right.
	Ambiguous bool

	now       *big.Rat
	waiting   []*Call
	paused    bool
	openAt    *big.Rat
	reopening bool
	lag       *big.Rat // how late the first of those was who left the line last
}

// NewLine returns an empty line at instant 0.
func NewLine(g GCRA, capacity int) *Line {
	return &Line{GCRA: g, Capacity: capacity, now: new(big.Rat), openAt: new(big.Rat), lag: new(big.Rat)}
}

// Advance lets time pass until t: calls leave when a timer fires for them and are
// cancelled when their deadline comes first.
func (l *Line) Advance(t *big.Rat) {
	for {
		next, fires, expired := t, false, -1
		if due := l.headDue(); due != nil {
			at := Ceil(due)
			if l.Late != nil {
				at.Add(at, big.NewInt(int64(l.Late(at.Int64()))))
			}
			if timer := new(big.Rat).SetInt(at); timer.Cmp(t) <= 0 {
				next, fires = timer, true
				l.Ambiguous = l.Ambiguous || timer.Cmp(t) == 0
			}
		}
		for i, c := range l.waiting {
			if c.deadline == nil {
				continue
			}
			if c.deadline.Cmp(next) < 0 {
				next, expired = c.deadline, i
			}
			l.Ambiguous = l.Ambiguous || c.deadline.Cmp(next) == 0 && expired != i
		}
		l.now = latest(l.now, next)
		switch {
		case expired >= 0:
			l.giveUp(l.waiting[expired])
		case fires:
			l.pass()
		default:
			l.Ambiguous = l.Ambiguous || l.GCRA.Blurs(t)
			return
		}
	}
}

// headDue returns when the head of the line is due, or nil if it waits for no time.
func (l *Line) headDue() *big.Rat {
	if len(l.waiting) == 0 || l.paused {
		return nil
	}
	head := l.waiting[0]
	return l.GCRA.Due(latest(head.arrived, l.openAt), head.cost)
}

// pass lets everybody leave who is due by now.
func (l *Line) pass() {
	for first := true; ; first = false {
		due := l.headDue()
		if due == nil || due.Cmp(l.now) > 0 {
			return
		}
		if first {
			l.lag = l.lateness(due)
		}
		head := l.waiting[0]
		l.leave(head, due)
		l.remove(head, Left)
	}
}

// lateness returns how late it is for what was due at due, up to the tolerance. What
// only the rounding to whole nanoseconds makes late is not late.
func (l *Line) lateness(due *big.Rat) *big.Rat {
	lag := new(big.Rat).Sub(l.now, new(big.Rat).SetInt(Ceil(due)))
	switch j := Instant(int64(l.GCRA.Tolerance)); {
	case lag.Sign() < 0:
		return new(big.Rat)
	case lag.Cmp(j) > 0:
		return j
	}
	return lag
}

// giveUp cancels a call. Whoever becomes head by that is looked at.
func (l *Line) giveUp(c *Call) {
	wasHead := l.waiting[0] == c
	l.remove(c, Cancelled)
	if wasHead {
		l.pass()
	}
}

// leave lets a call leave now that was due at due.
func (l *Line) leave(c *Call, due *big.Rat) {
	left := l.now
	if left.Cmp(new(big.Rat).SetInt(Ceil(due))) <= 0 {
		left = due
	}
	l.charge(due, left, c.cost)
	c.At = left
}

// charge applies the rule for the first call behind a closed gate: it leaves at
// once, and the next unit T later, so its cost is all that the bucket holds then.
func (l *Line) charge(due, left *big.Rat, cost int64) {
	if l.reopening {
		l.reopening = false
		l.GCRA.TAT = l.evened(l.openAt, cost)
	}
	l.GCRA.Leave(due, left, cost)
}

// evened returns TAT if the bucket holds no more than cost at the given instant.
func (l *Line) evened(at *big.Rat, cost int64) *big.Rat {
	g := &l.GCRA
	floor := new(big.Rat).Add(at, g.units(g.Burst-min(cost, g.Burst)))
	if g.TAT == nil {
		return floor
	}
	return latest(g.TAT, floor)
}

// Arrive adds a call at t, which may leave at once or be refused.
func (l *Line) Arrive(t *big.Rat, cost int64, deadline *big.Rat) *Call {
	l.Advance(t)
	l.pass()
	c := &Call{cost: cost, arrived: t, deadline: deadline}
	if len(l.waiting) == 0 && !l.paused && l.openAt.Cmp(t) <= 0 && l.GCRA.Due(t, cost).Cmp(t) <= 0 {
		due := t
		// Had the line left on time, this call would have come sooner by as much. If
		// it had to wait then, it is due at the end of that wait. If not, the line had
		// run dry, and nobody after it can say so either.
		sooner := new(big.Rat).Sub(t, l.lag)
		if waited := l.GCRA.Due(sooner, cost); !l.reopening && waited.Cmp(sooner) > 0 {
			due = waited
		} else {
			l.lag = new(big.Rat)
		}
		l.leave(c, due)
		c.Outcome = Left
		return c
	}
	var ahead int64
	for _, w := range l.waiting {
		ahead += w.cost
	}
	backlog := new(big.Rat).Sub(predict(l.GCRA, t, ahead, cost), t)
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

// late reports whether a call cannot leave before its deadline. A pause counts as
// if it ended now.
func (l *Line) late(c *Call, ahead int64) bool {
	if c.deadline == nil {
		return false
	}
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
		g.TAT = l.evened(since, first.cost)
	}
	return predict(g, opens, ahead, c.cost).Cmp(c.deadline) >= 0
}

// Cancel removes a call at t if it waits.
func (l *Line) Cancel(t *big.Rat, c *Call) {
	l.Advance(t)
	if c.Outcome == Waiting {
		l.giveUp(c)
	}
}

// SetInterval changes the rate at t.
func (l *Line) SetInterval(t, interval *big.Rat) {
	l.Advance(t)
	l.pass() // who is due already leaves at the old rate
	// What was saved up behind a gate and forfeited has been saved up again since.
	if l.reopening && !l.paused && l.openAt.Cmp(t) <= 0 && l.evened(l.openAt, 1).Cmp(t) < 0 {
		l.reopening, l.lag = false, new(big.Rat)
	}
	l.GCRA.SetInterval(t, interval)
	l.dismissLate()
	l.pass()
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
		l.pass()
	}
}

// Hold stops the line from t until the given instant.
func (l *Line) Hold(t, until *big.Rat) {
	l.Advance(t)
	if until.Cmp(latest(t, l.openAt)) > 0 {
		l.openAt, l.reopening = until, true
		l.dismissLate()
	}
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
