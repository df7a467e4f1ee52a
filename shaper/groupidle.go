package shaper

// An idle key is told by its TAT and its rate.
type idle struct {
	tat   int64 // in the ticks of its class, since the origin of its shard
	class *class
}

// idleKeys are those of a shard. Most have the usual rate, and to them there is nothing
// but TAT: a value of 8 bytes makes the map smaller and the search faster.
type idleKeys[K comparable] struct {
	usual  map[K]int64
	others map[K]idle
}

func (k *idleKeys[K]) get(key K, usual *class) (idle, bool) {
	if tat, known := k.usual[key]; known {
		return idle{tat, usual}, true
	}
	if len(k.others) == 0 {
		return idle{}, false
	}
	e, known := k.others[key]
	return e, known
}

// put adds a key or changes it. The class of a key never changes.
func (k *idleKeys[K]) put(key K, e idle, usual *class) {
	if e.class == usual {
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
		f(key, idle{tat, usual})
	}
	for key, e := range k.others {
		f(key, e)
	}
}
