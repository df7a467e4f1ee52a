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

// An Ask is what a call wants.
type Ask struct {
	Cost     int64
	Place    bool     // it needs a place in flight
	Class    int      // 0 is the most urgent
	Deadline *big.Rat // nil: none
	Arrived  *big.Rat // that it states; nil: when it comes. For an Account only
}

// A Call is one call in the model.
type Call struct {
	Ask
	Outcome Outcome
	At      *big.Rat // when it left

	arrived *big.Rat
	seq     int // in the order of joining
}

// Line is a waiting line in front of one GCRA, simulated event by event on the
// rational time line. Events must come in the order of time, on whole nanoseconds.
type Line struct {
	GCRA     GCRA
	Capacity int
	Places   int // how many may be in flight; 0: no bound

	// Classes is how many there are, and Overtake by how much a call may come later than
	// one of the next class and leave before it. 0 classes are 1.
	Classes  int
	Overtake *big.Rat

	// Late is how late the timer fires that was set for an instant, in ns. It must
	// depend on that instant alone. Nil means never.
	Late func(due int64) time.Duration

	// Opens returns the first instant, not before t, that is in no closed time, in ns. Nil
	// means that no time is closed.
	Opens func(t int64) int64

	// Ambiguous is set when events meet in the very nanosecond in which a call
	// leaves or TAT lies, so that more than one outcome is right.
	Ambiguous bool

	now       *big.Rat
	waiting   []*Call
	paused    bool
	openAt    *big.Rat
	reopening bool
	inFlight  int
	freedAt   *big.Rat // when a place became free after all had been taken
	latest    int64    // the cost of the last call or charge that left

	// What a caller may claim that comes late because its call before was let go late.
	lag   *big.Rat // how late the first of those was that left the line last
	since *big.Rat // no call of the line was due before
}

// NewLine returns an empty line at instant 0.
func NewLine(g GCRA, capacity int) *Line {
	return &Line{
		GCRA: g, Capacity: capacity, latest: 1,
		now: new(big.Rat), openAt: new(big.Rat), freedAt: new(big.Rat), lag: new(big.Rat), since: new(big.Rat),
	}
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
			if c.Deadline == nil {
				continue
			}
			if c.Deadline.Cmp(next) < 0 {
				next, expired = c.Deadline, i
			}
			l.Ambiguous = l.Ambiguous || c.Deadline.Cmp(next) == 0 && expired != i
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
	if len(l.waiting) == 0 || l.paused || l.waiting[0].Place && l.full() {
		return nil
	}
	return l.due(l.waiting[0], l.waiting[0].arrived)
}

// due returns when a call is due that is next and has asked since the given instant.
func (l *Line) due(c *Call, since *big.Rat) *big.Rat {
	since = latest(latest(since, l.openAt), l.since)
	if c.Place {
		since = latest(since, l.freedAt)
	}
	return l.next(since, c.Cost)
}

// next returns the earliest instant, not before t, at which the GCRA allows a cost and no
// time is closed. A call leaves in whole nanoseconds, so that is what a closed time is
// compared with.
func (l *Line) next(t *big.Rat, cost int64) *big.Rat {
	due := l.GCRA.Due(t, cost)
	if l.Opens == nil {
		return due
	}
	at := Ceil(due).Int64()
	if opens := l.Opens(at); opens > at {
		return Instant(opens)
	}
	return due
}

// closed reports whether no call may leave now, whatever it costs.
func (l *Line) closed() bool {
	return l.Opens != nil && l.Opens(Ceil(l.now).Int64()) > Ceil(l.now).Int64()
}

func (l *Line) full() bool { return l.Places > 0 && l.inFlight == l.Places }

// pass lets every call leave that is due by now.
func (l *Line) pass() {
	for first := true; ; first = false {
		due := l.headDue()
		if due == nil || due.Cmp(l.now) > 0 {
			return
		}
		if l.closed() {
			// What was due before the closed time began is due again when it ends.
			l.since = latest(l.since, l.now)
			return
		}
		head := l.waiting[0]
		l.leave(head, due)
		if first {
			l.lag = l.lateness(due)
		}
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

// giveUp cancels a call. The one that becomes head by that is looked at.
func (l *Line) giveUp(c *Call) {
	wasHead := l.waiting[0] == c
	l.withdraw(c, Cancelled)
	if wasHead {
		l.pass()
	}
}

// withdraw takes a call out of the line that does not leave. If it was the head, none of
// those behind it was due before now, or before the head itself was.
func (l *Line) withdraw(c *Call, o Outcome) {
	if l.waiting[0] == c {
		at := l.now
		if due := l.headDue(); due != nil && due.Cmp(at) < 0 && !l.closed() {
			at = due
		}
		l.since = latest(l.since, at)
	}
	l.remove(c, o)
}

// leave lets a call leave now that was due at due.
func (l *Line) leave(c *Call, due *big.Rat) {
	left := l.now
	if left.Cmp(new(big.Rat).SetInt(Ceil(due))) <= 0 {
		left = due
	}
	l.charge(due, left, c.Cost)
	l.since = latest(due, new(big.Rat).Sub(left, Instant(int64(l.GCRA.Tolerance))))
	if c.Place {
		l.inFlight++
	}
	c.At = left
}

// charge applies the rule for the first call behind a closed gate: it leaves at
// once, and the next unit T later, so its cost is all that the bucket holds then. Nor can
// a caller that was late before have come back meanwhile.
func (l *Line) charge(due, left *big.Rat, cost int64) {
	if l.reopening && l.openAt.Cmp(l.now) <= 0 && !l.paused {
		l.reopening, l.lag = false, new(big.Rat)
		l.GCRA.TAT = l.evened(l.openAt, cost)
	}
	l.GCRA.Leave(due, left, cost)
	l.latest = cost
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
