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
func (g *Group[K]) delayOfNew(key K, cost int64) (delay time.Duration) {
	if g.limits != nil {
		if limit, err := g.limitFor(key); err == nil {
			now := g.time.epoch.Add(g.time.since())
			delay = limit.Next(now, 0, cost).Sub(now)
		}
	}
	if g.account != nil {
		delay = max(delay, g.account.delayOfNew(cost))
	}
	return delay
}

// newLimited returns a member for a key with a limit of its own. It calls methods of the
// limit, so no lock may be held.
func (g *Group[K]) newLimited(key K, c *rateClass) (*member[K], error) {
	limit, err := g.limitFor(key)
	if err != nil {
		return nil, err
	}
	m := g.newMember(c, limit)
	m.class, m.limited = c, true
	return m, nil
}

// bindLimitedLocked makes a key with a limit of its own.
func (sh *shard[K]) bindLimitedLocked(key K, m *member[K]) *member[K] {
	m.flow.adoptPlaces(sh.group.inFlight.Load())
	sh.keepLocked(key, m)
	return m
}

// parkLimitedLocked forgets a key with a limit of its own once it is as good as new.
func (sh *shard[K]) parkLimitedLocked(key K, m *member[K], now time.Duration) {
	if at := m.flow.freshAt(m.class, sh.group.time.epoch, now); at > now {
		sh.sweeps.note(at)
		return
	}
	delete(sh.bound, key)
	_ = m.flow.discard() // no call is left that could be told
	sh.counts.add(m.flow.takeCounts())
	sh.group.keys.free(1)
}

// freshAt returns from when on the flow cannot be told from a fresh one of the class,
// since the epoch, unless it is used before.
func (f *flow) freshAt(c *rateClass, epoch time.Time, since time.Duration) time.Duration {
	l := f.lock()
	defer l.unlock()
	if again, ok := f.plainLocked(c, epoch, since); !ok {
		return again
	}
	limits := f.limits()
	at, ok := forgettable(limits.sched)
	if !ok {
		return math.MaxInt64
	}
	if l.lag == 0 {
		return at.Sub(epoch)
	}
	if _, guesses := limits.sched.(scheduler.Notifier); !guesses {
		at = limits.sched.Next(at, 0, 1) // what could not leave before, being closed, may claim it
	}
	return laterBy(at.Sub(epoch), time.Duration(l.lag))
}

// forgettable returns from when on a schedule is as good as new, if it can tell.
func forgettable(s scheduler.Scheduler) (at time.Time, ok bool) {
	if f, can := s.(scheduler.Forgettable); can {
		return f.FreshAt()
	}
	return time.Time{}, false
}
