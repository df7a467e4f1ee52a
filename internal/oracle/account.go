package oracle

import (
	"math/big"
	"time"
)

// Limits are those of one key, or of the account: what they have let leave, and what is in the
// way of more.
type Limits struct {
	GCRA   GCRA
	Places int // how many may be in flight; 0: no bound

	inFlight  int
	freedAt   *big.Rat // when a place became free after all had been taken
	paused    bool
	openAt    *big.Rat
	reopening bool     // no call has left since openAt
	since     *big.Rat // no call was due before
	latest    int64    // the cost of the last call or charge that left
}

// NewLimits returns limits from which nothing has left.
func NewLimits(g GCRA, places int) *Limits {
	zero := new(big.Rat)
	return &Limits{GCRA: g, Places: places, freedAt: zero, openAt: zero, since: zero, latest: 1}
}

func (l *Limits) full() bool { return l.Places > 0 && l.inFlight >= l.Places }

// stand reports whether a call waits for no instant.
func (l *Limits) stand(c *Call) bool { return l.paused || c.Place && l.full() }

// from returns the first instant, not before t, that gate, places and what has left allow.
func (l *Limits) from(t *big.Rat, c *Call) *big.Rat {
	t = latest(latest(t, l.openAt), l.since)
	if c.Place {
		t = latest(t, l.freedAt)
	}
	return t
}

// leave charges a call that was due at due and leaves now. It reports whether it is the first
// behind a gate.
func (l *Limits) leave(c *Call, due, now *big.Rat) (reopened bool) {
	if reopened = l.reopening; reopened {
		l.pass(c.Cost)
	}
	j := Instant(int64(l.GCRA.Tolerance))
	d := latest(whole(due), j.Sub(now, j))
	l.commit(d, c.Cost)
	l.since, l.latest = d, c.Cost
	if c.Place {
		l.inFlight++
	}
	return reopened
}

// commit charges n units at an instant in whole nanoseconds. TAT that has come within the one that
// ends there stays what it is.
func (l *Limits) commit(d *big.Rat, n int64) {
	g := &l.GCRA
	if g.TAT == nil || whole(g.TAT).Cmp(d) < 0 {
		g.TAT = d
	}
	g.TAT = new(big.Rat).Add(g.TAT, g.units(n))
}

// whole rounds an instant up to whole nanoseconds, which is how precisely a call can leave.
func whole(t *big.Rat) *big.Rat { return new(big.Rat).SetInt(Ceil(t)) }

// pass has the first call behind a gate take all that the bucket holds.
func (l *Limits) pass(cost int64) {
	l.reopening = false
	l.GCRA.TAT = l.evened(l.openAt, cost)
}

func (l *Limits) evened(at *big.Rat, cost int64) *big.Rat {
	g := &l.GCRA
	floor := new(big.Rat).Add(at, g.units(g.Burst-min(cost, g.Burst)))
	if g.TAT == nil {
		return floor
	}
	return latest(g.TAT, floor)
}

// foresee returns when a call would leave behind so many units, of which the first call costs
// first. A pause counts as if it ended now, and a place as if one were free.
func (l *Limits) foresee(now *big.Rat, ahead, cost, first int64) *big.Rat {
	g, opens := l.GCRA, latest(now, l.openAt)
	if l.paused || l.reopening {
		since := l.openAt
		if l.paused {
			since = opens
		}
		g.TAT = l.evened(since, first)
	}
	return predict(g, opens, ahead, cost)
}

// crowded is the rule of a line that holds so many calls; see Line.crowded.
func (l *Limits) crowded(now *big.Rat, waiting, capacity int) bool {
	line := Line{GCRA: l.GCRA, Capacity: capacity, latest: l.latest, now: now, waiting: make([]*Call, waiting)}
	return line.crowded()
}

// A Key is one key of an Account, or the account's own calls, which have no limits of their own.
type Key struct {
	*Limits
	Capacity int // of calls that wait; 0: no bound of its own

	waiting []*Call // in the order in which they leave
}

// freeAt returns from when on the key allows its head, nil if no instant can be told.
func (k *Key) freeAt() *big.Rat {
	c := k.waiting[0]
	switch {
	case k.Limits == nil:
		return c.arrived
	case k.stand(c):
		return nil
	}
	return k.GCRA.Due(k.from(c.arrived, c), c.Cost)
}

func (k *Key) free(now *big.Rat) bool {
	if len(k.waiting) == 0 {
		return false
	}
	at := k.freeAt()
	return at != nil && whole(at).Cmp(now) <= 0
}

// Account is the line of keys that have limits of their own and share others, simulated event by
// event on the rational time line. Events must come in the order of time, on whole nanoseconds.
type Account struct {
	*Limits
	Keys     []*Key
	Capacity int
	Classes  int
	Overtake *big.Rat // nil: 0; for Strict the longest Duration
	Late     func(due int64) time.Duration

	// Ambiguous is set when more than one outcome is right; see Line.
	Ambiguous bool

	now     *big.Rat
	lag     *big.Rat // how late the calls of the latest pass were
	joined  int
	head    *Key     // whose call is next, as of the latest pass
	headDue *big.Rat // when that is due, nil if at no instant
	armed   *big.Int // for when the timer was set then; nil: it was not
}

// NewAccount returns an account whose line is empty.
func NewAccount(l *Limits, capacity int, keys ...*Key) *Account {
	return &Account{Limits: l, Capacity: capacity, Keys: keys, now: new(big.Rat), lag: new(big.Rat)}
}

// Advance lets time pass until t.
func (a *Account) Advance(t *big.Rat) {
	for {
		next, fires := t, false
		if at := a.armed; at != nil {
			due := new(big.Int).Set(at)
			if a.Late != nil {
				due.Add(due, big.NewInt(int64(a.Late(at.Int64()))))
			}
			if timer := latest(a.now, new(big.Rat).SetInt(due)); timer.Cmp(t) <= 0 {
				next, fires = timer, true
				a.Ambiguous = a.Ambiguous || timer.Cmp(t) == 0
			}
		}
		var late *Call
		var of *Key
		for _, k := range a.Keys {
			for _, c := range k.waiting {
				if c.Deadline == nil {
					continue
				}
				switch c.Deadline.Cmp(next) {
				case -1:
					next, late, of, fires = c.Deadline, c, k, false
				case 0:
					a.Ambiguous = true
				}
			}
		}
		a.now = latest(a.now, next)
		switch {
		case late != nil:
			a.giveUp(of, late)
		case fires:
			a.pass()
		default:
			a.Ambiguous = a.Ambiguous || a.blurs(t)
			return
		}
	}
}

func (a *Account) blurs(t *big.Rat) bool {
	if a.GCRA.Blurs(t) {
		return true
	}
	for _, k := range a.Keys {
		if k.Limits != nil && k.GCRA.Blurs(t) {
			return true
		}
	}
	return false
}

// alarm returns for when the timer is set: the next instant at which a key allows its head, or
// the head of the line is due.
func (a *Account) alarm() *big.Int {
	var at *big.Int
	consider := func(t *big.Rat) {
		if t != nil && (at == nil || Ceil(t).Cmp(at) < 0) {
			at = Ceil(t)
		}
	}
	consider(a.headDue)
	if !a.paused {
		for _, k := range a.Keys {
			if len(k.waiting) > 0 && !k.free(a.now) {
				consider(k.freeAt())
			}
		}
	}
	return at
}

// next returns the key whose head is next: of those that their keys allow now.
func (a *Account) next() (next *Key) {
	for _, k := range a.Keys {
		if k.free(a.now) && (next == nil || a.before(k, next)) {
			next = k
		}
	}
	return next
}

// before reports whether the head of one key goes before that of another: by arrival, or by when
// the key was last let go of a hold or a pause, later by Overtake for each class.
func (a *Account) before(k, other *Key) bool {
	c, d := k.waiting[0], other.waiting[0]
	if a.strict() && c.Class != d.Class {
		return c.Class < d.Class
	}
	from := func(k *Key) *big.Rat {
		if k.Limits == nil {
			return k.waiting[0].arrived
		}
		return latest(k.waiting[0].arrived, k.openAt)
	}
	if order := a.rank(from(k), c.Class).Cmp(a.rank(from(other), d.Class)); order != 0 {
		return order < 0
	}
	if c.Class != d.Class {
		return c.Class < d.Class
	}
	return c.seq < d.seq
}

func (a *Account) strict() bool {
	return a.Overtake != nil && a.Overtake.Cmp(Instant(1<<63-1)) == 0
}

func (a *Account) rank(from *big.Rat, class int) *big.Rat {
	if a.Overtake == nil {
		return from
	}
	by := new(big.Rat).Mul(a.Overtake, Instant(int64(class)))
	return by.Add(by, from)
}

// due returns when a call of a key is due that has asked since the given instant: when both
// limits allow it.
func (a *Account) due(k *Key, c *Call, since *big.Rat) *big.Rat {
	since = a.from(since, c)
	if k.Limits == nil {
		return a.GCRA.Due(since, c.Cost)
	}
	since = k.from(since, c)
	return latest(a.GCRA.Due(since, c.Cost), k.GCRA.Due(since, c.Cost))
}

// pass lets every call leave that is due by now.
func (a *Account) pass() {
	a.letLeave()
	a.armed = a.alarm()
}

func (a *Account) letLeave() {
	for first := true; ; first = false {
		k := a.next()
		a.head, a.headDue = k, nil
		if k == nil || a.stand(k.waiting[0]) {
			return
		}
		c := k.waiting[0]
		due := a.due(k, c, c.arrived)
		if a.headDue = due; whole(due).Cmp(a.now) > 0 {
			return
		}
		a.leave(k, c, due)
		if first {
			a.lag = a.lateness(due)
		}
		k.remove(c, Left)
	}
}

// lateness returns how late it is for what was due at due, up to the tolerance of the account.
func (a *Account) lateness(due *big.Rat) *big.Rat {
	line := Line{GCRA: a.GCRA, now: a.now}
	return line.lateness(due)
}

func (a *Account) leave(k *Key, c *Call, due *big.Rat) {
	if a.Limits.leave(c, due, a.now) {
		a.lag = new(big.Rat)
	}
	if k.Limits != nil {
		k.Limits.leave(c, due, a.now)
	}
	c.At = a.now
}

func (k *Key) remove(c *Call, o Outcome) {
	for i, w := range k.waiting {
		if w == c {
			k.waiting = append(k.waiting[:i:i], k.waiting[i+1:]...)
			c.Outcome = o
			return
		}
	}
}
