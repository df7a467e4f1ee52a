package shaper

import "time"

// An idle key is told by its TAT and its rate, and by how late its last callers were
// woken, for as long as that matters.
type idle struct {
	tat   int64 // in the ticks of its class, since the origin of its shard
	class *class
	lag   time.Duration
}

// leave reports whether a call leaves at a time since the origin of the shard.
func (e *idle) leave(since time.Duration, cost int64) bool {
	after, claimed, ok := e.class.ticks.LeaveLate(e.tat, since, cost, e.lag)
	if !ok {
		return false
	}
	e.tat = after
	if !claimed {
		e.lag = 0
	}
	return true
}

// forgetAt returns from when on the key cannot be told from a fresh one, since the
// origin of the shard.
func (e *idle) forgetAt() time.Duration { return e.class.ticks.DryAt(e.tat) + e.lag }

// idleKeys are those of a shard. Most have the usual rate and were woken by nobody, and
// to them there is nothing but TAT: a value of 8 bytes makes the map smaller and the
// search faster. Each key is in one of the maps.
type idleKeys[K comparable] struct {
	usual  map[K]int64
	others map[K]idle
}

func (k *idleKeys[K]) get(key K, usual *class) (idle, bool) {
	if tat, known := k.usual[key]; known {
		return idle{tat: tat, class: usual}, true
	}
	if len(k.others) == 0 {
		return idle{}, false
	}
	e, known := k.others[key]
	return e, known
}

// put adds a key, or changes it from what it was before.
func (k *idleKeys[K]) put(key K, e, before idle, usual *class) {
	if e.class == usual && e.lag == 0 {
		if before.lag != 0 {
			delete(k.others, key)
		}
		if k.usual == nil {
			k.usual = make(map[K]int64)
		}
		k.usual[key] = e.tat
		return
	}
	if k.others == nil {
		k.others = make(map[K]idle)
	}
	k.others[key] = e
}

func (k *idleKeys[K]) delete(key K) {
	delete(k.usual, key)
	delete(k.others, key)
}

func (k *idleKeys[K]) len() int { return len(k.usual) + len(k.others) }

// all calls f for each key; f may put or delete that key.
func (k *idleKeys[K]) all(usual *class, f func(K, idle)) {
	for key, tat := range k.usual {
		f(key, idle{tat: tat, class: usual})
	}
	for key, e := range k.others {
		f(key, e)
	}
}
