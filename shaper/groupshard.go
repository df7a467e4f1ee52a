package shaper

import (
	"errors"
	"hash/maphash"
	"sync"
	"time"
)

// A shard holds some of the keys of a Group, under a lock of their own. A key is idle or
// bound: while no call waits for it and nothing is special about it, its TAT is all that
// there is to it; else it is bound to a flow.
type shard[K comparable] struct {
	group *Group[K]

	mu sync.Mutex // taken before that of a Shaper, never the other way round
	// Guarded by mu:
	idle   idleKeys[K]
	bound  map[K]*member[K]
	origin time.Duration // of the ticks of the idle, since the epoch
	counts counts        // of calls that no Shaper that is bound now has counted
	sweeps sweeps
}

// shardsFor returns a power of two: enough to keep callers apart, and to have a search
// for what can be forgotten look at a thousand keys at a time.
func shardsFor(keys int64) int64 {
	n := int64(8)
	for n < 1024 && n < keys/1024 {
		n *= 2
	}
	return n
}

func (g *Group[K]) shardOf(key K) *shard[K] {
	g.made()
	return &g.shards[maphash.Comparable(g.seed, key)&uint64(len(g.shards)-1)]
}

// enter is for a call that arrives. It returns nil if the call has left at once, or is
// turned away with an error. Otherwise it returns the member that has the answer, which
// must be released.
func (sh *shard[K]) enter(key K, cost int64, now time.Duration, dead error) (*member[K], error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if dead != nil {
		sh.counts.count(submitted, 0)
		sh.counts.count(cancelled, 0)
		return nil, dead
	}
	if state(sh.group.life.Load()) != open {
		// Asked under the lock, so that Close finds the calls that came in before.
		return nil, sh.refuseLocked(ErrClosed, cost)
	}
	if cost < 1 {
		return nil, sh.refuseLocked(ErrCost, cost)
	}
	sh.ageLocked(now)
	e, known := sh.idle.get(key, sh.group.usual)
	if !known {
		m, err := sh.makeLocked(key, now)
		if err == nil {
			err = sh.openLocked(key, m)
		}
		if err != nil {
			return nil, sh.refuseLocked(err, cost)
		}
		if m != nil {
			m.users++
			return m, nil
		}
		e, _ = sh.idle.get(key, sh.group.usual)
		// The clock was read before, and the key may have been forgotten since then, or
		// its rate have been long in coming. A time from before would be a unit too many.
		now = max(now, sh.group.time.since())
	}
	if sh.group.account == nil && sh.leaveLocked(key, &e, now, cost) {
		return nil, nil
	}
	m := sh.bindLocked(key, e)
	m.users++
	return m, nil
}

// leaveLocked reports whether a call of an idle key has left.
func (sh *shard[K]) leaveLocked(key K, e *idle, now time.Duration, cost int64) bool {
	before := e.special()
	if !e.leave(now-sh.origin, cost) {
		return false
	}
	special := (before || cost > 1) && e.special() // a past ends, or begins with a debt
	if special != before {
		sh.idle.delete(key)
	}
	sh.idle.put(key, e, special, sh.group.usual)
	sh.counts.count(submitted, 0)
	sh.counts.count(departed, cost)
	return true
}

// leaveNow reports whether a call has left at once. It makes no key and binds none.
func (sh *shard[K]) leaveNow(key K, cost int64, now time.Duration) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e, known := sh.idle.get(key, sh.group.usual)
	return known && sh.group.account == nil && state(sh.group.life.Load()) == open && sh.leaveLocked(key, &e, now, cost)
}

// acquire returns the member of a key, which is made if need be and must be released.
//
// A change may be made, and what left be charged, even if the Group is closed; a call is
// not taken then.
func (sh *shard[K]) acquire(key K, forCall bool) (*member[K], error) {
	now := sh.group.time.since()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if forCall && state(sh.group.life.Load()) != open {
		return nil, ErrClosed
	}
	sh.ageLocked(now)
	m, err := sh.makeLocked(key, now)
	if err == nil && forCall {
		err = sh.openLocked(key, m)
	}
	if err != nil {
		return nil, err
	}
	if m == nil {
		e, _ := sh.idle.get(key, sh.group.usual)
		m = sh.bindLocked(key, e)
	}
	m.users++
	return m, nil
}

// find returns the member of a key that is remembered, or nil. It must be released.
func (sh *shard[K]) find(key K) *member[K] {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	m := sh.bound[key]
	if m == nil {
		e, known := sh.idle.get(key, sh.group.usual)
		if !known {
			return nil
		}
		m = sh.bindLocked(key, e)
	}
	m.users++
	return m
}

// release gives back a member that was acquired or found.
func (sh *shard[K]) release(key K, m *member[K]) {
	now := sh.group.time.since()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.ageLocked(now)
	m.users--
	if m.users == 0 {
		sh.parkLocked(key, m, now)
	}
}

var errNotEqual = errors.New("shaper: a key that differs from itself can never be found")

// makeLocked makes the key if there is none. It returns the member of one that is bound,
// and nil if it is idle. It may let go of the lock meanwhile.
func (sh *shard[K]) makeLocked(key K, now time.Duration) (*member[K], error) {
	var made newKey[K]
	for {
		if sh.hasLocked(key) {
			made.abandon(sh.group) // another caller has made it meanwhile
			return sh.bound[key], nil
		}
		if made.place && made.rates == sh.group.rates.Load() || !made.place && made.prepareAtOnce(sh.group) {
			break
		}
		// A call that finds the key made by another does not mind an error of this.
		if err := sh.prepareUnlocked(&made, key, now); err != nil && !sh.hasLocked(key) {
			made.abandon(sh.group)
			return nil, err
		}
	}
	if key != key {
		made.abandon(sh.group)
		return nil, errNotEqual
	}
	sh.growLocked(now)
	if made.limited != nil {
		return sh.bindLimitedLocked(key, made.limited), nil
	}
	// It owes nothing, so far back as any call may claim; see limits.since.
	e := idle{tat: made.class.ticks.Advance(made.class.ticks.Fresh(), latestIdle), class: made.class}
	if !made.class.exact {
		return sh.bindLocked(key, e), nil
	}
	sh.addLocked(key, e)
	return nil, nil
}

// prepareUnlocked lets go of the lock to prepare a new key: the function of the user's,
// and the locks of other shards, need it free.
func (sh *shard[K]) prepareUnlocked(made *newKey[K], key K, now time.Duration) error {
	sh.mu.Unlock()
	returned := false
	defer func() { // even if that function panics
		if !returned {
			made.abandon(sh.group)
		}
		sh.mu.Lock()
	}()
	err := made.prepare(sh.group, key, now)
	returned = true
	return err
}

// openLocked is asked once more when a key has been made. The lock was free meanwhile, and
// Close has not found a call that comes now.
func (sh *shard[K]) openLocked(key K, m *member[K]) error {
	if state(sh.group.life.Load()) == open {
		return nil
	}
	if m != nil && m.users == 0 {
		sh.parkLocked(key, m, sh.group.time.since())
	}
	return ErrClosed
}

func (sh *shard[K]) hasLocked(key K) bool {
	_, known := sh.idle.get(key, sh.group.usual)
	return known || sh.bound[key] != nil
}

func (sh *shard[K]) addLocked(key K, e idle) {
	sh.idle.put(key, &e, e.special(), sh.group.usual)
	sh.sweeps.note(sh.origin + e.forgetAt())
}

func (sh *shard[K]) refuse(reason error, cost int) error {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.refuseLocked(reason, int64(cost))
}

// refuseLocked counts a refusal and returns its error.
func (sh *shard[K]) refuseLocked(reason error, cost int64) error {
	sh.counts.count(submitted, 0)
	sh.counts.count(refused, 0)
	return &Refusal{Reason: reason, Cost: int(cost)}
}
