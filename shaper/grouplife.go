package shaper

import (
	"context"
	"errors"
)

// Shutdown refuses new calls with [ErrClosed] and lets those that wait leave at their
// pace, each key at its own. It returns nil once no call waits, or the error of ctx if
// that ends first.
func (g *Group[K]) Shutdown(ctx context.Context) error {
	g.made()
	g.life.CompareAndSwap(int32(open), int32(draining))
	if g.account != nil {
		return await(ctx, g.party.drain(g.account))
	}
	for i := range g.shards {
		for _, f := range g.shards[i].flows() {
			if err := await(ctx, f.drain()); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close refuses new calls and those that wait with [ErrClosed]. Schedules of keys with a Close
// method are closed as well, and their errors returned; otherwise that is nil. Closing twice, or
// during a [Group.Shutdown], is fine.
func (g *Group[K]) Close() error {
	g.made()
	g.life.Store(int32(closed))
	if g.account != nil {
		g.party.close(g.account)
	}
	var errs []error
	for i := range g.shards {
		for _, f := range g.shards[i].flows() {
			if f.own != nil {
				errs = append(errs, f.discard())
			} else {
				errs = append(errs, f.line.close())
			}
		}
	}
	return errors.Join(errs...)
}

// flows returns those that are bound to a key of the shard now. As no call is taken
// any more, none of them will wait for another key.
func (sh *shard[K]) flows() []*flow {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	all := make([]*flow, 0, len(sh.bound))
	for _, m := range sh.bound {
		all = append(all, m.flow)
	}
	return all
}
