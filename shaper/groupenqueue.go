package shaper

// Enqueue is [Shaper.Enqueue] for the key. A new key may be refused with [ErrTooManyKeys].
func (g *Group[K]) Enqueue(key K, c Call, done func(err error)) (cancel func() bool, err error) {
	if done == nil {
		panic("shaper: Enqueue without a function to call")
	}
	sh := g.shardOf(key)
	a := c.ask(g.config.rule)
	a.done = done
	m, err := sh.acquire(key, true)
	if err != nil {
		return nil, sh.refuse(err, int(a.cost))
	}
	waits := false
	defer func() { // a function of the user's may panic
		if !waits {
			sh.release(key, m)
		}
	}()
	if err := m.weigh(&a); err != nil {
		return nil, sh.refuse(err, int(a.cost))
	}
	cancelCall, err := m.flow.enqueue(a)
	if err != nil {
		return nil, err
	}
	waits = true // the member is released with the answer, or when the call is cancelled
	return func() bool {
		if !cancelCall() {
			return false
		}
		m.answered()
		return true
	}, nil
}
