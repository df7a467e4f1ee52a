package shaper

import (
	"math"
	"time"
)

// A member is a Shaper that is bound to a key.
type member struct {
	shaper *Shaper
	class  *class
	users  int // those who use it now, under the lock of the shard
}

// bindLocked binds an idle key to a Shaper.
func (sh *shard[K]) bindLocked(key K, e idle) *member {
	g := sh.group
	m, ok := g.spare.Get().(*member)
	if !ok {
		m = &member{shaper: newShaper(e.class.pacer(), g.config, g.time, &g.stock)}
	}
	m.class, m.users = e.class, 0
	m.shaper.adopt(e.class, g.time.epoch.Add(sh.origin), e.tat)
	sh.idle.delete(key)
	if sh.bound == nil {
		sh.bound = make(map[K]*member)
	}
	sh.bound[key] = m
	return m
}

// parkLocked makes a key idle again that nobody uses, or forgets it, if there is nothing
// to it but its TAT.
func (sh *shard[K]) parkLocked(key K, m *member, now time.Duration) {
	tat, again, ok := m.shaper.park(m.class, sh.group.time.epoch, now, sh.origin)
	if !ok {
		sh.sweeps.note(again)
		return
	}
	delete(sh.bound, key)
	sh.counts.add(m.shaper.takeCounts())
	if at := sh.origin + m.class.ticks.DryAt(tat); at > now {
		sh.addLocked(key, idle{tat, m.class})
	} else {
		sh.group.keys.free(1)
	}
	sh.group.spare.Put(m) // it belongs to others from here on
}

// adopt makes the Shaper that of a key with this TAT. Nobody else uses it.
func (s *Shaper) adopt(c *class, origin time.Time, tat int64) {
	s.lock()
	defer s.unlock()
	gcra := s.gcra
	*gcra = *c.fresh
	if c.exact {
		c.ticks.Unpack(gcra, origin, tat)
	}
	s.gate, s.lag, s.life.state = gate{}, 0, open
	s.full, s.share = c.rate, whole
	s.boundBacklogLocked()
}

// park reports whether nothing but its TAT, which it returns in ticks since the origin,
// distinguishes the Shaper from a fresh one. If so it may be adopted by another key. If
// not, it tells from when on that may be so, unless somebody uses it before.
func (s *Shaper) park(c *class, epoch time.Time, since, origin time.Duration) (tat int64, again time.Duration, ok bool) {
	s.lock()
	defer s.mu.Unlock() // and the lane stays shut
	now := epoch.Add(since)
	if s.gate.paused || s.full != c.rate || s.share != whole {
		return 0, math.MaxInt64, false
	}
	if s.gate.openAt.After(now) {
		return 0, s.gate.openAt.Sub(epoch), false
	}
	s.settleLocked(now)
	dryAt := s.gcra.TAT().Sub(epoch) + 1
	tat, ok = c.ticks.Pack(s.gcra, epoch.Add(origin))
	if c.exact && ok {
		dryAt = origin + c.ticks.DryAt(tat)
	}
	switch {
	case s.gate.reopening:
		return 0, s.forfeitedLocked().TAT().Sub(epoch) + 1, false
	case s.lag > 0 && c.quick && dryAt+s.lag > since:
		// Those who were woken late may claim to have come sooner.
		return 0, dryAt + s.lag, false
	case dryAt <= since:
		return c.ticks.Fresh(), 0, true
	}
	return tat, dryAt, ok && c.exact
}
