package shaper

import (
	"context"
	"time"
)

// Held reports whether a hold is in force, and until when: as HoldUntil was told, so that who
// has set a hold knows it again. Of several, of a key and its account too, it is the one that
// ends last. A pause is no hold. After [Shaper.Resume] there is none.
func (s *Shaper) Held() (until time.Time, held bool) { return s.own.held() }

func (f *flow) held() (until time.Time, held bool) {
	l := f.lock()
	defer l.unlock()
	gate := &l.gate
	if f.own != nil && f.own.gate.openAt.After(gate.openAt) {
		gate = &f.own.gate
	}
	now := l.time.now()
	switch {
	case !gate.reopening || !gate.openAt.After(now):
		return time.Time{}, false
	case gate.told.IsZero(): // it was loaded from a saved state
		return l.time.wall(now, gate.openAt), true
	}
	return gate.told, true
}

// Held is [Shaper.Held] for the key. That of a Group that is [Under] an account tells of the
// holds of both. A key that is not remembered is not held itself.
func (g *Group[K]) Held(key K) (until time.Time, held bool) {
	g.made()
	if m := g.shardOf(key).find(key); m != nil {
		defer m.shard.release(key, m)
		return m.flow.held()
	}
	if g.account != nil {
		return g.account.first.held()
	}
	return time.Time{}, false
}

// Held is [Group.Held] for the key.
func (k *Key[K]) Held() (until time.Time, held bool) { return k.in().Held(k.key) }

// HoldAccount is [Shaper.HoldUntil] of the account that the Group is [Under]. It reports whether
// there is one; otherwise it does nothing.
func (g *Group[K]) HoldAccount(t time.Time) bool {
	g.made()
	if g.account == nil {
		return false
	}
	g.account.first.holdUntil(t)
	return true
}

// DepartN is [Shaper.Depart] in terms of no type of this package, for those that know it by an
// interface only: it waits for a call of the cost, which takes a place in flight if inFlight is
// true, and returns [Departure.Settle].
func (s *Shaper) DepartN(ctx context.Context, cost int, inFlight bool) (settle func(actual int) error, err error) {
	return settleOf(s.Depart(ctx, Call{Cost: cost, InFlight: inFlight}))
}

// DepartN is [Shaper.DepartN] for the key.
func (g *Group[K]) DepartN(ctx context.Context, key K, cost int, inFlight bool) (settle func(actual int) error, err error) {
	return settleOf(g.Depart(ctx, key, Call{Cost: cost, InFlight: inFlight}))
}

// DepartN is [Group.DepartN] for the key.
func (k *Key[K]) DepartN(ctx context.Context, cost int, inFlight bool) (settle func(actual int) error, err error) {
	return k.in().DepartN(ctx, k.key, cost, inFlight)
}

func settleOf(d *Departure, err error) (settle func(actual int) error, _ error) {
	if err != nil {
		return nil, err
	}
	return d.Settle, nil
}

// CanSettle returns why [Shaper.Depart] cannot work, or nil if it can.
func (s *Shaper) CanSettle() error {
	l := s.own.lock()
	defer l.unlock()
	return s.own.settlesLocked()
}

// CanSettle is [Shaper.CanSettle] for all keys. The rate of a key can always settle a call.
func (g *Group[K]) CanSettle() error {
	g.made()
	return nil
}

// CanSettle is [Group.CanSettle].
func (k *Key[K]) CanSettle() error { return k.in().CanSettle() }
