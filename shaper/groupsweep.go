package shaper

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// keyCount is how many keys a Group remembers in all its shards.
type keyCount struct {
	most int64
	n    atomic.Int64
}

// reserve takes the place of one more key, if there is one.
func (c *keyCount) reserve() bool {
	for {
		n := c.n.Load()
		if n >= c.most {
			return false
		}
		if c.n.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (c *keyCount) free(n int) { c.n.Add(int64(-n)) }

// sweeps decide when a shard is searched for keys that can be forgotten: when it has
// grown to twice of what the last search left, so that the work is a constant for each
// new key, and whenever a place or a number is needed.
type sweeps struct {
	at   int // how many keys make a search worth it
	peak int // the most that the map of the idle has held

	// soonest is when a key of the shard can be forgotten, at the earliest, since the
	// epoch. A key that is in use has no say in it before it is released.
	soonest atomic.Int64
}

func (s *sweeps) note(at time.Duration) {
	if int64(at) < s.soonest.Load() {
		s.soonest.Store(int64(at))
	}
}

const (
	fewKeys = 64
	// oldOrigin is when the origin of a shard is moved: ticks as fine as any have a
	// horizon of four times that.
	oldOrigin = 4 * time.Minute
)

// ageLocked is called before the ticks of a shard are used.
func (sh *shard[K]) ageLocked(now time.Duration) {
	if now-sh.origin > oldOrigin {
		sh.sweepLocked(now)
	}
}

// growLocked is called before a key is made.
func (sh *shard[K]) growLocked(now time.Duration) {
	if sh.idle.len()+len(sh.bound) >= max(sh.sweeps.at, fewKeys) {
		sh.sweepLocked(now)
	}
}

func (sh *shard[K]) sweep(now time.Duration) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.sweepLocked(now)
}

// sweepLocked forgets all keys that can be forgotten.
func (sh *shard[K]) sweepLocked(now time.Duration) {
	now = max(now, sh.origin)
	sh.sweeps.peak = max(sh.sweeps.peak, sh.idle.len())
	sh.sweeps.soonest.Store(math.MaxInt64)
	for key, m := range sh.bound {
		if m.users == 0 {
			sh.parkLocked(key, m, now)
		}
	}
	moved := now - sh.origin
	gone := 0
	late := sh.group.lateAccount()
	sh.idle.all(sh.group.usual, func(key K, e idle) {
		at := laterBy(sh.origin+e.forgetAt(), late)
		if at <= now {
			sh.idle.delete(key)
			gone++
			return
		}
		sh.sweeps.note(at)
		e.tat = e.class.ticks.Advance(e.tat, moved)
		if e.past.late > 0 {
			e.past.since -= moved
			e.past.freed -= moved
		}
		sh.idle.put(key, &e, e.special(), sh.group.usual)
	})
	sh.origin = now
	sh.group.keys.free(gone)
	sh.shrinkLocked()
	if len(sh.bound) == 0 {
		sh.bound = nil
	}
	sh.sweeps.at = 2 * (sh.idle.len() + len(sh.bound))
}

// lateAccount returns how far back a call of any key may claim, if the keys are under an account.
func (g *Group[K]) lateAccount() time.Duration {
	if g.account == nil {
		return 0
	}
	g.account.lock()
	defer g.account.unlock()
	return time.Duration(g.account.lag)
}

// shrinkLocked gives back the memory of a map that was much larger: maps never shrink.
func (sh *shard[K]) shrinkLocked() {
	if sh.sweeps.peak < fewKeys || sh.idle.len() > sh.sweeps.peak/4 {
		return
	}
	var smaller idleKeys[K]
	sh.idle.all(sh.group.usual, func(key K, e idle) { smaller.put(key, &e, e.special(), sh.group.usual) })
	sh.idle, sh.sweeps.peak = smaller, smaller.len()
}

// makeRoom forgets keys until there is a place for a new one, and reserves it. No lock
// may be held.
func (g *Group[K]) makeRoom(now time.Duration) bool {
	// Not all begin with the same shard, so that they do not wait for one another.
	first := rand.IntN(len(g.shards))
	for i := range g.shards {
		sh := &g.shards[(first+i)%len(g.shards)]
		if sh.sweepIfDue(now) && g.keys.reserve() {
			return true
		}
	}
	return g.reviewNowAndThen(now) && g.keys.reserve()
}

// sweepIfDue reports whether a key could be forgotten, and then looks for all of them.
func (sh *shard[K]) sweepIfDue(now time.Duration) bool {
	if time.Duration(sh.sweeps.soonest.Load()) > now {
		return false
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if time.Duration(sh.sweeps.soonest.Load()) <= now { // still
		sh.sweepLocked(now)
	}
	return true
}
