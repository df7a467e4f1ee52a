package shaper

import (
	"math"
	"time"
)

// A member is a Shaper that is bound to a key.
type member struct {
	shaper *Shaper
	class  *rateClass
	// limited: its Shaper has a limit that is the key's own, and serves no other key.
	limited bool
	users   int // callers that use it now, under the lock of the shard
}

// bindLocked binds an idle key to a Shaper.
func (sh *shard[K]) bindLocked(key K, e idle) *member {
	g := sh.group
	m, ok := g.spare.Get().(*member)
	if !ok {
		m = &member{shaper: newShaper(e.class.pacer(), g.config, g.time, &g.pool)}
	}
	m.class, m.users = e.class, 0
	m.shaper.adopt(e, g.time.epoch.Add(sh.origin), g.inFlight.Load())
	sh.idle.delete(key)
	if sh.bound == nil {
		sh.bound = make(map[K]*member)
	}
	sh.bound[key] = m
	return m
}

// parkLocked makes a key idle again that no caller uses, or forgets it, if there is nothing
// to it but its TAT.
func (sh *shard[K]) parkLocked(key K, m *member, now time.Duration) {
	if m.limited {
		sh.parkLimitedLocked(key, m, now)
		return
	}
	e, again, ok := m.shaper.park(m.class, sh.group.time.epoch, now, sh.origin)
	if !ok {
		sh.sweeps.note(again)
		return
	}
	delete(sh.bound, key)
	sh.counts.add(m.shaper.takeCounts())
	if sh.origin+e.forgetAt() > now {
		sh.addLocked(key, e)
	} else {
		sh.group.keys.free(1)
	}
	sh.group.spare.Put(m) // it belongs to others from here on
}

// adopt makes the Shaper that of a key, with TAT in ticks since the origin. No other
// goroutine uses it.
func (s *Shaper) adopt(e idle, origin time.Time, maxInFlight int64) {
	s.lock()
	defer s.unlock()
	gcra := s.gcra
	*gcra = *e.class.fresh
	if e.class.exact {
		e.class.ticks.Unpack(gcra, origin, e.tat)
	}
	s.gate, s.life.state, s.debt = gate{}, open, max(e.past.debt, 1)
	s.places.freedAt = time.Time{}
	s.late.by, s.late.since = e.past.late, origin.Add(e.past.since)
	s.places.freedAt = origin.Add(e.past.freed)
	s.base, s.full, s.share = e.class.rate, e.class.rate, whole
	s.places.most = maxInFlight
}

// park returns all that distinguishes the Shaper from a fresh one, in ticks since the
// origin, if an idle key can tell it. Then it may be adopted by another key. If not, it
// returns from when on that may be so, unless it is used before.
func (s *Shaper) park(c *rateClass, epoch time.Time, since, origin time.Duration) (e idle, again time.Duration, ok bool) {
	s.lock()
	defer s.mu.Unlock() // and the fast path stays shut
	if again, ok := s.plainLocked(c, epoch, since); !ok {
		return e, again, false
	}
	e = idle{tat: c.ticks.Fresh(), class: c}
	forgetAt := laterBy(endOf(s.gcra.TAT().Sub(epoch)), s.late.by)
	if forgetAt <= since {
		return e, 0, true
	}
	if c.exact && s.late.by <= latestIdle && !s.claimBoundByPlaceLocked() {
		if tat, ok := c.ticks.Pack(s.gcra, epoch.Add(origin)); ok {
			e.tat = tat
			e.past = s.pastLocked(epoch.Add(origin))
			return e, 0, true
		}
	}
	// TAT is too far ahead for ticks, or the lateness too long, or the class has none, or
	// claims differ by whether a call needs a place.
	return e, forgetAt, false
}

// plainLocked reports whether there is nothing to the Shaper of a key of the class but what
// its limits owe. If not, it returns from when on that may be so.
func (s *Shaper) plainLocked(c *rateClass, epoch time.Time, since time.Duration) (again time.Duration, ok bool) {
	now := epoch.Add(since)
	if s.gate.paused || s.share != whole || s.full.Cmp(c.rate) != 0 || s.line.head != nil || s.places.taken > 0 {
		return math.MaxInt64, false
	}
	if s.gate.openAt.After(now) {
		return s.gate.openAt.Sub(epoch), false
	}
	s.settleLocked(now)
	if !s.gate.reopening {
		return 0, true
	}
	at, ok := s.savedUpLocked()
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
func (s *Shaper) claimBoundByPlaceLocked() bool {
	return s.late.by > 0 && s.places.freedAt.After(s.late.since)
}

// pastLocked returns what matters beside TAT, since the origin.
func (s *Shaper) pastLocked(origin time.Time) (p past) {
	if s.late.by > 0 {
		p.late, p.since = s.late.by, s.late.since.Sub(origin)
		p.freed = later(s.places.freedAt, s.late.since).Sub(origin)
	}
	if s.debt > 1 {
		p.debt = s.debt
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
