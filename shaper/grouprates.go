package shaper

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// rates tells the rates of keys. It is replaced as a whole, so a pointer to it says
// whether what was asked before still holds.
type rates[K comparable] struct {
	of func(K) scheduler.Rate // nil: all keys have the usual one
}

// SetRate is [Shaper.SetRate] for the key. A key whose rate is not the one that a new key
// would have is remembered, until it is: by SetRate, by [Group.Refresh], or because the
// function of [WithRates] has come to say the same.
func (g *Group[K]) SetRate(key K, r scheduler.Rate) error {
	sh := g.shardOf(key)
	for {
		rates := g.rates.Load()
		c, err := rates.classOf(g, key)
		if err != nil || c.rate.Cmp(r) != 0 {
			return g.change(key, func(f *flow) error { return f.setRate(r) })
		}
		// Not by Refresh: asked once more, the function may say something else.
		if done, err := sh.refresh(key, c, rates); done {
			return err
		}
	}
}

// Refresh gives the key the rate that a new one would have: what the function of
// [WithRates] or [Group.SetRates] says, which is asked anew, or the rate of the Group. It
// applies at once, also to calls that wait, as [Shaper.SetRate] does. An invalid rate is
// an error that changes nothing.
func (g *Group[K]) Refresh(key K) error {
	sh := g.shardOf(key)
	for {
		rates := g.rates.Load()
		c, err := rates.classOf(g, key)
		if err != nil {
			return err
		}
		if done, err := sh.refresh(key, c, rates); done {
			return err
		}
	}
}

// SetRates replaces the function of [WithRates], or gives the Group one, and sets the rates
// of all keys by it, those with waiting calls included. f is called as WithRates says. A
// key for which it returns an invalid rate keeps the one that it has; the first such error
// is returned when all keys have been asked about.
func (g *Group[K]) SetRates(f func(key K) scheduler.Rate) error {
	g.made()
	if f == nil {
		return errors.New("shaper: rates nil: must be a function")
	}
	g.rates.Store(&rates[K]{f})
	var first error
	for i := range g.shards {
		for _, key := range g.shards[i].known() {
			if err := g.Refresh(key); err != nil && first == nil {
				first = err
			}
		}
	}
	return first
}

// classOf returns the class of a new key. It calls the function of the user's, so no
// lock may be held.
func (r *rates[K]) classOf(g *Group[K], key K) (*rateClass, error) {
	if r.of == nil {
		return g.usual, nil
	}
	rate := r.of(key)
	if rate == g.usual.rate {
		return g.usual, nil
	}
	c, err := g.others.get(rate, &g.config)
	if err != nil {
		return nil, fmt.Errorf("%w (from the function for rates)", err)
	}
	return c, nil
}

// refresh makes the key, if it is remembered, one of the class. It does nothing and reports
// false if rates, which have told the class, have been replaced.
func (sh *shard[K]) refresh(key K, c *rateClass, rates *rates[K]) (done bool, err error) {
	now := sh.group.time.since()
	sh.mu.Lock()
	if sh.group.rates.Load() != rates {
		sh.mu.Unlock()
		return false, nil
	}
	sh.ageLocked(now)
	m := sh.bound[key]
	if m == nil {
		e, known := sh.idle.get(key, sh.group.usual)
		if !known || e.class == c {
			sh.mu.Unlock()
			return true, nil
		}
		m = sh.bindLocked(key, e)
	}
	m.users++
	sh.mu.Unlock()
	// Calls may leave by this, and be answered: no lock may be held.
	defer sh.release(key, m)
	if err := m.flow.setRate(c.rate); err != nil {
		return true, err
	}
	return sh.settleClass(m, c, rates), nil
}

// settleClass has the member be of the class, unless the rates have been replaced.
func (sh *shard[K]) settleClass(m *member[K], c *rateClass, rates *rates[K]) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.group.rates.Load() != rates {
		return false
	}
	m.become(c)
	return true
}

// review looks at the keys that are remembered for their rate alone: a new key may have
// come to have the same.
func (g *Group[K]) review(sh *shard[K]) {
	for _, key := range sh.deviants() {
		rates := g.rates.Load()
		if c, err := rates.classOf(g, key); err == nil {
			sh.reclass(key, c, rates)
		}
	}
}

// reviewNowAndThen reviews all keys, and reports that, unless it has done so within the
// last second: it takes time in proportion to their number.
func (g *Group[K]) reviewNowAndThen(now time.Duration) bool {
	last := g.reviewed.Load()
	if now-time.Duration(last) < time.Second || !g.reviewed.CompareAndSwap(last, int64(now)) {
		return false
	}
	for i := range g.shards {
		g.review(&g.shards[i])
	}
	return true
}

// deviants returns the keys that have another rate than their class and are not in use.
func (sh *shard[K]) deviants() (keys []K) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for key, m := range sh.bound {
		if m.users == 0 && !m.flow.hasRate(m.class.rate) {
			keys = append(keys, key)
		}
	}
	return keys
}

// reclass has the key belong to the class if it has its rate.
func (sh *shard[K]) reclass(key K, c *rateClass, rates *rates[K]) {
	now := sh.group.time.since()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.ageLocked(now) // before the member is looked up: it may become another key's
	m := sh.bound[key]
	if m == nil || m.users > 0 || sh.group.rates.Load() != rates || !m.flow.hasRate(c.rate) {
		return
	}
	m.become(c)
	sh.parkLocked(key, m, now)
}

// known returns all keys of the shard.
func (sh *shard[K]) known() []K {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	keys := make([]K, 0, sh.idle.len()+len(sh.bound))
	sh.idle.all(sh.group.usual, func(key K, _ idle) { keys = append(keys, key) })
	for key := range sh.bound {
		keys = append(keys, key)
	}
	return keys
}

// become has the member belong to another class, the rate of which it has.
func (m *member[K]) become(c *rateClass) {
	m.class = c
	l := m.flow.lock()
	defer l.unlock()
	m.flow.limits().mine().base = c.rate
}

// hasRate reports whether the rate is the one that was set.
func (f *flow) hasRate(r scheduler.Rate) bool {
	l := f.lock()
	defer l.unlock()
	return f.limits().full.Cmp(r) == 0
}

// A newKey is what a key needs that is to be made: a class, as the rates have told it, a
// place among the keys, and where keys have limits of their own, a member with that.
type newKey[K comparable] struct {
	class   *rateClass
	rates   *rates[K]
	place   bool
	limited *member[K]
}

// prepare finds what a new key needs. No lock may be held.
func (k *newKey[K]) prepare(g *Group[K], key K, now time.Duration) (err error) {
	k.rates = g.rates.Load()
	if k.class, err = k.rates.classOf(g, key); err != nil {
		return err
	}
	if k.place = k.place || g.keys.reserve() || g.makeRoom(now); !k.place {
		return fmt.Errorf("%w: all %d still owe something, wait or are held", ErrTooManyKeys, g.keys.most)
	}
	if g.limits != nil { // again if the rates have been replaced: the pacer is another then
		k.limited, err = g.newLimited(key, k.class)
	}
	return err
}

// prepareAtOnce is prepare where no code of the user's, and no lock, is needed for it.
func (k *newKey[K]) prepareAtOnce(g *Group[K]) bool {
	k.rates, k.class = g.rates.Load(), g.usual
	k.place = k.rates.of == nil && g.limits == nil && g.keys.reserve()
	return k.place
}

// abandon gives back what was prepared.
func (k *newKey[K]) abandon(g *Group[K]) {
	if k.place {
		g.keys.free(1)
	}
}
