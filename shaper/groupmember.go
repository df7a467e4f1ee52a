package shaper

import (
	"math"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// A member is a flow that is bound to a key.
type member[K comparable] struct {
	flow  *flow
	class *rateClass
	// limited: it has a limit that is the key's own, and serves no other key.
	limited bool
	users   int32 // callers that use it now, under the lock of the shard

	shard *shard[K]
	key   K
}

// newMember returns a member for keys of a class, with limits of their own.
func (g *Group[K]) newMember(c *rateClass, more ...scheduler.Scheduler) *member[K] {
	var m *member[K]
	if g.account != nil {
		one := new(struct {
			member member[K]
			guest  guest
		})
		m = &one.member
		m.flow = g.party.init(&one.guest, g.account, c, more, g.config.rule)
	} else {
		config := g.config
		config.limits = more
		m = &member[K]{flow: &newShaper(c.pacer(), config, g.time, &g.pool).own}
	}
	m.flow.owner = m
	return m
}

// answered has the key released that a call was for which no caller waits.
func (m *member[K]) answered() { m.shard.release(m.key, m) }

// bindLocked binds an idle key to a flow.
func (sh *shard[K]) bindLocked(key K, e idle) *member[K] {
	g := sh.group
	m, ok := g.spare.Get().(*member[K])
	if !ok {
		m = g.newMember(e.class)
	}
	m.class, m.users = e.class, 0
	m.flow.adopt(e, g.time.epoch.Add(sh.origin), g.inFlight.Load())
	sh.idle.delete(key)
	sh.keepLocked(key, m)
	return m
}

// keepLocked has a member be that of a key.
func (sh *shard[K]) keepLocked(key K, m *member[K]) {
	m.shard, m.key = sh, key
	if sh.bound == nil {
		sh.bound = make(map[K]*member[K])
	}
	sh.bound[key] = m
}

// parkLocked makes a key idle again that no caller uses, or forgets it, if there is nothing
// to it but its TAT.
func (sh *shard[K]) parkLocked(key K, m *member[K], now time.Duration) {
	if m.limited {
		sh.parkLimitedLocked(key, m, now)
		return
	}
	e, again, ok := m.flow.park(m.class, sh.group.time.epoch, now, sh.origin)
	if !ok {
		sh.sweeps.note(again)
		return
	}
	delete(sh.bound, key)
	sh.counts.add(m.flow.takeCounts())
	if max(again, sh.origin+e.forgetAt()) > now {
		sh.addLocked(key, e)
	} else {
		sh.group.keys.free(1)
	}
	sh.group.spare.Put(m) // it belongs to others from here on
}

// adopt makes the flow that of a key, with TAT in ticks since the origin. No other
// goroutine uses it.
func (f *flow) adopt(e idle, origin time.Time, maxInFlight int64) {
	l := f.lock()
	defer l.unlock()
	limits := f.limits()
	*limits.gcra = *e.class.fresh
	if e.class.exact {
		e.class.ticks.Unpack(limits.gcra, origin, e.tat)
	}
	limits.renew(e.class)
	limits.owe(max(e.past.debt, 1))
	f.setPlacesLocked(maxInFlight)
	f.turn = 0
	if f.own != nil { // it was parked when its since bounded no claim
		limits.since = time.Time{}
		return
	}
	limits.since = origin.Add(e.past.since)
	limits.mine().places.freedAt = origin.Add(e.past.freed)
	l.life.state, l.lag = open, lag(e.past.late)
}

// park returns all that distinguishes the flow from a fresh one, in ticks since the origin,
// if an idle key can tell it, and from when on it can be forgotten. Then it may be adopted by
// another key. If not, it returns from when on that may be so, unless it is used before.
func (f *flow) park(c *rateClass, epoch time.Time, since, origin time.Duration) (e idle, again time.Duration, ok bool) {
	l := f.lock()
	if f.own == nil {
		defer l.mu.Unlock() // and the fast path stays shut
	} else {
		defer l.unlock()
	}
	if again, ok := f.plainLocked(c, epoch, since); !ok {
		return e, again, false
	}
	e = idle{tat: c.ticks.Fresh(), class: c}
	limits := f.limits()
	forgetAt := laterBy(endOf(limits.gcra.TAT().Sub(epoch)), time.Duration(l.lag))
	if forgetAt <= since {
		return e, 0, true
	}
	if c.exact && time.Duration(l.lag) <= latestIdle && !f.claimBoundByPlaceLocked() {
		if tat, ok := c.ticks.Pack(limits.gcra, epoch.Add(origin)); ok {
			e.tat = tat
			e.past = f.pastLocked(epoch.Add(origin))
			return e, forgetAt, true
		}
	}
	// TAT is too far ahead for ticks, or the lateness too long, or the class has none, or
	// claims differ by whether a call needs a place.
	return e, forgetAt, false
}

// plainLocked reports whether there is nothing to the flow of a key of the class but what
// its limits owe. If not, it returns from when on that may be so.
func (f *flow) plainLocked(c *rateClass, epoch time.Time, since time.Duration) (again time.Duration, ok bool) {
	now := epoch.Add(since)
	l := f.limits()
	if l.gate.paused || l.share != whole || l.full.Cmp(c.rate) != 0 || f.calls.head != nil || l.places.taken > 0 || f.kept {
		return math.MaxInt64, false
	}
	if l.gate.openAt.After(now) {
		return l.gate.openAt.Sub(epoch), false
	}
	if until, ok := f.unsettledUntilLocked(now); ok {
		return until.Sub(epoch), false
	}
	if l.settle(now) && f.own == nil {
		f.line.lag.end() // a caller that was late before has not come back since
	}
	if !l.gate.reopening {
		return f.settledLocked(epoch, since)
	}
	at, ok := l.savedUp()
	if !ok {
		return math.MaxInt64, false
	}
	return at.Sub(epoch), false
}

// latestIdle is the longest lateness of an idle key: the ticks of a shard reach that far
// back from its origin.
const latestIdle = oldOrigin

// claimBoundByPlaceLocked reports whether a call that needs a place may claim less than one
// that needs none.
func (f *flow) claimBoundByPlaceLocked() bool {
	l := f.limits()
	return f.own == nil && f.line.lag > 0 && l.places.freedAt.After(l.since)
}

// pastLocked returns what matters beside TAT, since the origin.
func (f *flow) pastLocked(origin time.Time) (p past) {
	l := f.limits()
	if f.own == nil && f.line.lag > 0 {
		p.late, p.since = time.Duration(f.line.lag), l.since.Sub(origin)
		p.freed = later(l.places.freedAt, l.since).Sub(origin)
	}
	if l.debt > 1 {
		p.debt = l.debt
	}
	return p
}

// endOf returns the end of the nanosecond that begins at d.
func endOf(d time.Duration) time.Duration { return laterBy(d, 1) }

// laterBy returns d+by for by >= 0, or the longest Duration if that is more than it can tell.
func laterBy(d, by time.Duration) time.Duration {
	if d > math.MaxInt64-by {
		return math.MaxInt64
	}
	return d + by
}
