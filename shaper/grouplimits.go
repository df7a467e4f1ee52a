package shaper

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// limitFor returns the limit of a new key. It calls the function of the user's, so no lock
// may be held.
func (g *Group[K]) limitFor(key K) (scheduler.Scheduler, error) {
	limit, err := g.limits(key)
	switch {
	case err != nil:
		return nil, fmt.Errorf("shaper: schedule of a key: %w", err)
	case limit == nil:
		return nil, errors.New("shaper: schedule of a key: it is nil")
	case limit.MaxCost() < 1:
		return nil, errUnusable("schedule of a key", limit)
	}
	return limit, nil
}

// delayOfNew returns what the first call of a key would wait. Its limit may be closed.
func (g *Group[K]) delayOfNew(key K) time.Duration {
	limit, err := g.limitFor(key)
	if err != nil {
		return 0
	}
	now := g.time.epoch.Add(g.time.since())
	return limit.Next(now, 0, 1).Sub(now)
}

// newLimited returns a Shaper for a key with a limit of its own. It calls methods of the
// limit, so no lock may be held.
func (g *Group[K]) newLimited(key K, c *rateClass) (*Shaper, error) {
	limit, err := g.limitFor(key)
	if err != nil {
		return nil, err
	}
	config := g.config
	config.limits = []scheduler.Scheduler{limit}
	return newShaper(c.pacer(), config, g.time, &g.pool), nil
}

// bindLimitedLocked makes a key with a limit of its own.
func (sh *shard[K]) bindLimitedLocked(key K, made newKey[K]) *member {
	m := &member{shaper: made.limited, class: made.class, limited: true}
	m.shaper.boundPlaces(sh.group.inFlight.Load())
	if sh.bound == nil {
		sh.bound = make(map[K]*member)
	}
	sh.bound[key] = m
	return m
}

// parkLimitedLocked forgets a key with a limit of its own once it is as good as new.
func (sh *shard[K]) parkLimitedLocked(key K, m *member, now time.Duration) {
	if at := m.shaper.freshAt(m.class, sh.group.time.epoch, now); at > now {
		sh.sweeps.note(at)
		return
	}
	delete(sh.bound, key)
	sh.counts.add(m.shaper.takeCounts())
	sh.group.keys.free(1)
}

// freshAt returns from when on the Shaper cannot be told from a fresh one of the class,
// since the epoch, unless it is used before.
func (s *Shaper) freshAt(c *rateClass, epoch time.Time, since time.Duration) time.Duration {
	s.lock()
	defer s.unlock()
	if again, ok := s.plainLocked(c, epoch, since); !ok {
		return again
	}
	at, ok := forgettable(s.sched)
	if !ok {
		return math.MaxInt64
	}
	if s.late.by > 0 {
		at = s.sched.Next(at, 0, 1) // what could not leave before, being closed, may claim it
	}
	return laterBy(at.Sub(epoch), s.late.by)
}

// forgettable returns from when on a schedule is as good as new, if it can tell.
func forgettable(s scheduler.Scheduler) (at time.Time, ok bool) {
	if f, can := s.(scheduler.Forgettable); can {
		return f.FreshAt()
	}
	return time.Time{}, false
}
