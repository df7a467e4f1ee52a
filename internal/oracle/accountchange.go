package oracle

import (
	"math/big"
	"slices"
)

// Arrive adds a call of a key at t, which may leave at once or be refused.
func (a *Account) Arrive(t *big.Rat, k *Key, ask Ask) *Call {
	a.Advance(t)
	a.pass()
	c := &Call{Ask: ask, arrived: t}
	if ask.Arrived != nil {
		c.arrived = new(big.Rat).Sub(ask.Arrived, Instant(1)) // just before
	}
	place, ahead := a.placeOf(k, c)
	switch {
	case a.leavesAtOnce(k, c):
		c.Outcome = Left
	case k.Capacity > 0 && k.crowded(a.now, len(k.waiting), k.Capacity),
		ask.Deadline != nil && a.foresee(k, c, ahead).Cmp(ask.Deadline) >= 0,
		a.crowded(a.now, a.len(), a.Capacity) && !a.makeRoom(k):
		c.Outcome = Refused
	default:
		a.joined++
		c.seq = a.joined
		if c.arrived.Cmp(t) < 0 {
			a.since = t // it is not late for that
		}
		k.waiting = slices.Insert(k.waiting, place, c)
		a.pass()
	}
	return c
}

func (a *Account) len() (n int) {
	for _, k := range a.Keys {
		n += len(k.waiting)
	}
	return n
}

// placeOf returns where a newcomer stands among the calls of its key, and how many units stand
// before it.
func (a *Account) placeOf(k *Key, c *Call) (place int, ahead int64) {
	for i, w := range k.waiting {
		order := a.rank(c.arrived, c.Class).Cmp(a.rank(w.arrived, w.Class))
		first := order < 0 || order == 0 && c.Class < w.Class
		if a.strict() && c.Class != w.Class {
			first = c.Class < w.Class
		}
		if first {
			return i, ahead
		}
		ahead += w.Cost
	}
	return len(k.waiting), ahead
}

// leavesAtOnce lets a newcomer leave that need not wait: no call waits that its key allows.
func (a *Account) leavesAtOnce(k *Key, c *Call) bool {
	if a.next() != nil || len(k.waiting) > 0 || a.stand(c) || k.Limits != nil && k.stand(c) {
		return false
	}
	if whole(a.due(k, c, a.now)).Cmp(a.now) > 0 {
		return false
	}
	a.leave(k, c, a.claim(k, c))
	return true
}

// claim returns since when a newcomer is due that leaves now; see Line.claim.
func (a *Account) claim(k *Key, c *Call) *big.Rat {
	if k.Limits != nil {
		k.settle(a.now)
	}
	held := k.Limits != nil && k.reopening
	since := a.from(new(big.Rat), c)
	if k.Limits != nil {
		since = k.from(since, c)
	}
	sooner := latest(since, new(big.Rat).Sub(a.now, a.lag))
	if due := a.due(k, c, since); !a.reopening && !held && a.lag.Sign() > 0 && due.Cmp(sooner) > 0 {
		return due
	}
	if !held {
		a.lag = new(big.Rat)
	}
	return a.now
}

// foresee returns the earliest instant at which a call of a key may leave behind so many units
// of that key. Other keys are left out.
func (a *Account) foresee(k *Key, c *Call, ahead int64) *big.Rat {
	first := c.Cost
	if ahead > 0 {
		first = k.waiting[0].Cost
	}
	due := a.Limits.foresee(a.now, ahead, c.Cost, first)
	if k.Limits != nil {
		due = latest(due, k.Limits.foresee(a.now, ahead, c.Cost, first))
	}
	return due
}

// makeRoom refuses the newest call, of the least urgent class, of the key with the most calls, if
// those are more than the newcomer's key would have.
func (a *Account) makeRoom(k *Key) bool {
	var most *Key
	for _, other := range a.Keys {
		n := len(other.waiting)
		if n > 0 && (most == nil || n > len(most.waiting) || n == len(most.waiting) && other.waiting[0].seq < most.waiting[0].seq) {
			most = other
		}
	}
	if most == nil || len(most.waiting) <= len(k.waiting)+1 {
		return false
	}
	newest := most.waiting[0]
	for _, c := range most.waiting {
		if c.Class >= newest.Class { // those of a class stand in the order in which they came
			newest = c
		}
	}
	a.withdraw(most, newest, Refused)
	a.pass()
	return true
}

// Allow reports whether a call of a key may leave at t, and lets it leave then.
func (a *Account) Allow(t *big.Rat, k *Key, cost int64) bool {
	a.Advance(t)
	a.pass()
	return a.leavesAtOnce(k, &Call{Ask: Ask{Cost: cost}, arrived: t})
}

// Delay returns what a call of one unit of a key would wait at least that comes at t.
func (a *Account) Delay(t *big.Rat, k *Key) *big.Rat {
	a.Advance(t)
	a.pass()
	c := &Call{Ask: Ask{Cost: 1, Class: max(a.Classes-1, 0)}, arrived: t}
	_, ahead := a.placeOf(k, c)
	return new(big.Rat).Sub(a.foresee(k, c, ahead), t)
}

// Cancel removes a call at t if it waits.
func (a *Account) Cancel(t *big.Rat, k *Key, c *Call) {
	a.Advance(t)
	if c.Outcome == Waiting {
		a.giveUp(k, c)
	}
}

func (a *Account) giveUp(k *Key, c *Call) {
	a.withdraw(k, c, Cancelled)
	a.pass()
}

// withdraw takes a call out of the line that does not leave. If it was the head of its key, or of
// the line, none of those behind it was due before now, or before itself.
func (a *Account) withdraw(k *Key, c *Call, o Outcome) {
	if k.waiting[0] == c {
		if k.Limits != nil {
			k.settled(a.now, k.freeAt())
		}
		if a.head == k {
			var due *big.Rat
			if !a.stand(c) && (k.Limits == nil || !k.stand(c)) {
				due = a.due(k, c, c.arrived)
			}
			a.settled(a.now, due)
		}
	}
	k.remove(c, o)
}

// settled notes that nothing was due before now, or before due if that has passed.
func (l *Limits) settled(now, due *big.Rat) {
	if due != nil && due.Cmp(now) < 0 {
		now = whole(due)
	}
	l.since = latest(l.since, now)
}

// limits returns those that a change of the key is about.
func (a *Account) limits(k *Key) *Limits {
	if k.Limits != nil {
		return k.Limits
	}
	return a.Limits
}

// SetInterval changes the rate of a key, or of the account, at t.
func (a *Account) SetInterval(t *big.Rat, k *Key, interval *big.Rat) {
	a.Advance(t)
	a.pass() // what is due already leaves at the old rate
	l := a.limits(k)
	if l.settle(t) && k.Limits == nil {
		a.lag = new(big.Rat)
	}
	l.GCRA.SetInterval(t, interval)
	a.changed(k, true)
}

// settle closes the matter of a gate that has opened, once all that was forfeited by it would have
// been saved up again, and reports whether it has.
func (l *Limits) settle(now *big.Rat) bool {
	if !l.reopening || l.paused || l.openAt.Cmp(now) > 0 || whole(l.evened(l.openAt, 1)).Cmp(now) > 0 {
		return false
	}
	l.reopening = false
	return true
}

// changed is called when limits have changed; late if calls may be too late by that.
func (a *Account) changed(k *Key, late bool) {
	for _, other := range a.Keys {
		if late && (k.Limits == nil || other == k) {
			a.dismissLate(other)
		}
	}
	if a.head == k && k.Limits != nil && !k.free(a.now) && len(k.waiting) > 0 {
		a.settled(a.now, a.headDue) // its key forbids what was next
	}
	a.pass()
}

// Charge records a call of a key at t that has left without asking.
func (a *Account) Charge(t *big.Rat, k *Key, cost int64) {
	a.Advance(t)
	a.claim(k, &Call{Ask: Ask{Cost: cost}})
	a.Limits.charge(t, cost, func() { a.lag = new(big.Rat) })
	if k.Limits != nil {
		k.Limits.charge(t, cost, func() {})
	}
	for _, other := range a.Keys {
		a.dismissLate(other)
	}
	a.changed(k, false)
}

func (l *Limits) charge(t *big.Rat, cost int64, reopened func()) {
	if l.reopening && !l.paused && l.openAt.Cmp(t) <= 0 {
		l.pass(cost)
		reopened()
	}
	l.commit(t, cost)
	l.since, l.latest = latest(l.since, t), cost
}

// Release says that a call of a key is no more in flight.
func (a *Account) Release(t *big.Rat, k *Key) {
	a.Advance(t)
	freed := a.Limits.release(t)
	if k.Limits != nil && k.Limits.release(t) {
		freed = true
	}
	if freed {
		a.pass()
	}
}

func (l *Limits) release(t *big.Rat) (freed bool) {
	if freed = l.full(); freed {
		l.freedAt = t
	}
	l.inFlight--
	return freed
}

// Pause stops a key, or the account, at t.
func (a *Account) Pause(t *big.Rat, k *Key) {
	a.Advance(t)
	a.limits(k).paused = true
	a.changed(k, false)
}

// Resume lifts pause and hold at t.
func (a *Account) Resume(t *big.Rat, k *Key) {
	a.Advance(t)
	if l := a.limits(k); l.paused || l.openAt.Cmp(t) > 0 {
		l.paused, l.openAt, l.reopening = false, t, true
		a.changed(k, false)
	}
}

// Hold stops a key, or the account, from t until the given instant.
func (a *Account) Hold(t *big.Rat, k *Key, until *big.Rat) {
	a.Advance(t)
	if l := a.limits(k); until.Cmp(latest(t, l.openAt)) > 0 {
		l.openAt, l.reopening = until, true
		a.changed(k, true)
	}
}

// dismissLate refuses the calls of a key that cannot leave before their deadlines any more.
func (a *Account) dismissLate(k *Key) {
	var ahead int64
	for _, c := range slices.Clone(k.waiting) {
		if c.Deadline != nil && a.foresee(k, c, ahead).Cmp(c.Deadline) >= 0 {
			a.withdraw(k, c, Refused)
		} else {
			ahead += c.Cost
		}
	}
}
