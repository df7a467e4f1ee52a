package shaper

import "time"

// An idle key is told by its TAT and its rate, and by what else of its past matters for as
// long as TAT has not passed. All times are since the origin of its shard.
type idle struct {
	tat   int64 // in the ticks of its class
	class *rateClass
	past  past
}

// A past is what the calls of a key have left behind beside TAT. As a rule that is nothing.
type past struct {
	late  time.Duration // of a lateness: by
	since time.Duration // of a lateness
	freed time.Duration // of places, if there is a lateness, and then since at least
	debt  int64         // of a Shaper, if it is not 1
}

// leave reports whether a call leaves now.
func (e *idle) leave(now time.Duration, cost int64) bool {
	from := now
	if e.past.late > 0 {
		from = max(now-e.past.late, e.past.since)
	}
	after, due, ok := e.class.ticks.LeaveLate(e.tat, now, from, cost)
	if !ok {
		return false
	}
	e.tat = after
	if due == now || e.past.late == 0 {
		e.past = past{}
	} else {
		e.past.since = due
	}
	if debt := debtOf(cost, e.class.fresh); debt > 1 {
		e.past.debt = debt
	}
	return true
}

// special reports whether there is more to the key than its TAT and its class.
func (e *idle) special() bool { return e.past != past{} }

// forgetAt returns from when on the key cannot be told from a fresh one.
func (e *idle) forgetAt() time.Duration { return e.class.ticks.DryAt(e.tat) + e.past.late }

// idleKeys are those of a shard. Most have the usual rate and no past, and to them there
// is nothing but TAT: a value of 8 bytes makes the map smaller and the search faster. Each
// key is in one of the maps.
type idleKeys[K comparable] struct {
	usual map[K]int64 // of the usual rate, without a past
	rated map[K]rated // of another rate, without a past
	past  map[K]idle
}

type rated struct {
	tat   int64
	class *rateClass
}

func (k *idleKeys[K]) get(key K, usual *rateClass) (idle, bool) {
	if tat, known := k.usual[key]; known {
		return idle{tat: tat, class: usual}, true
	}
	if len(k.rated) > 0 {
		if r, known := k.rated[key]; known {
			return idle{tat: r.tat, class: r.class}, true
		}
	}
	if len(k.past) > 0 {
		e, known := k.past[key]
		return e, known
	}
	return idle{}, false
}

// put adds a key, or changes one of which the class stays. A key that was special before
// and is not now, or the other way round, has to be deleted first.
func (k *idleKeys[K]) put(key K, e *idle, special bool, usual *rateClass) {
	switch {
	case special:
		if k.past == nil {
			k.past = make(map[K]idle)
		}
		k.past[key] = *e
	case e.class == usual:
		if k.usual == nil {
			k.usual = make(map[K]int64)
		}
		k.usual[key] = e.tat
	default:
		if k.rated == nil {
			k.rated = make(map[K]rated)
		}
		k.rated[key] = rated{e.tat, e.class}
	}
}

func (k *idleKeys[K]) delete(key K) {
	delete(k.usual, key)
	delete(k.rated, key)
	delete(k.past, key)
}

func (k *idleKeys[K]) len() int { return len(k.usual) + len(k.rated) + len(k.past) }

// all calls f for each key; f may put or delete that key.
func (k *idleKeys[K]) all(usual *rateClass, f func(K, idle)) {
	for key, tat := range k.usual {
		f(key, idle{tat: tat, class: usual})
	}
	for key, r := range k.rated {
		f(key, idle{tat: r.tat, class: r.class})
	}
	for key, e := range k.past {
		f(key, e)
	}
}
