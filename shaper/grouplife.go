package shaper

import "context"

// Shutdown refuses new calls with [ErrClosed] and lets those that wait leave at their
// pace, each key at its own. It returns nil once no call waits, or the error of ctx if
// that ends first.
func (g *Group[K]) Shutdown(ctx context.Context) error {
	g.made()
	g.life.CompareAndSwap(int32(open), int32(draining))
	for i := range g.shards {
		for _, s := range g.shards[i].shapers() {
			if err := s.Shutdown(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close refuses new calls and those that wait with [ErrClosed]. It always returns nil.
// Closing twice, or during a [Group.Shutdown], is fine.
func (g *Group[K]) Close() error {
	g.made()
	g.life.Store(int32(closed))
	for i := range g.shards {
		for _, s := range g.shards[i].shapers() {
			_ = s.Close()
		}
	}
	return nil
}

// shapers returns those that are bound to a key of the shard now. As no call is taken
// any more, none of them will wait for another key.
func (sh *shard[K]) shapers() []*Shaper {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	all := make([]*Shaper, 0, len(sh.bound))
	for _, m := range sh.bound {
		all = append(all, m.shaper)
	}
	return all
}
