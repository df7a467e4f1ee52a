package shaper

// Enqueue is [Shaper.Enqueue] for the key. A new key may be refused with [ErrTooManyKeys].
func (g *Group[K]) Enqueue(key K, c Call, done func(err error)) (cancel func() bool, err error) {
	g.made()
	return g.enqueue(key, c.enqueued(g.config.rule, done))
}

func (g *Group[K]) enqueue(key K, a ask) (cancel func() bool, err error) {
	sh := g.shardOf(key)
	m, err := sh.acquire(key, true)
	if err != nil {
		return nil, sh.refuse(err, int(a.cost))
	}
	taken := false
	a.taken = &taken
	defer func() { // a function of the user's may panic, when the call waits or has left, too
		if !taken {
			sh.release(key, m) // otherwise that is done with the answer, or by cancel
		}
	}()
	if err := m.weigh(&a); err != nil {
		return nil, sh.refuse(err, int(a.cost))
	}
	cancelCall, err := m.flow.enqueue(a)
	if err != nil {
		return nil, err
	}
	return func() bool {
		if !cancelCall() {
			return false
		}
		m.answered()
		return true
	}, nil
}
