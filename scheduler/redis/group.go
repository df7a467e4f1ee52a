package redis

import (
	"context"
	"fmt"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// A Group paces each key on its own, as a [Shaper] of a [Schedule] for each would, over
// all processes that use the same prefix: a partner's host, an API credential, a sender.
// Start with [NewGroup] and [Group.Wait]. The limit of key "k" of the prefix "p" is that
// of the Schedule with the name "p/k", if neither has a slash.
//
// All state is in Redis, where that of an idle key expires by itself. A process has in
// memory what it uses now and has used lately, at most so many keys as [WithMaxKeys]
// says; a new one beyond that is refused with [shaper.ErrTooManyKeys]. A key that waits,
// is held or has left anything alone that counts still is never dropped, and dropping
// others resets nothing.
//
// All keys share one view of whether Redis is away. It has no goroutine and no timer
// while no call waits, so it need not be closed.
//
// The zero Group refuses all calls. All methods are safe for concurrent use.
type Group[K ~string] struct {
	link   *link
	prefix string
	rate   scheduler.Rate
	burst  int64
	policy Policy
	config *config

	mu sync.Mutex
	// Guarded by mu:
	members map[K]*member
	sweepAt int       // how many make a search for what can be dropped worth it
	rested  time.Time // no search at the cap before
	closed  bool
}

// A member is the Shaper of a key.
type member struct {
	schedule *Schedule
	shaper   *Shaper
	users    int       // under the lock of the group
	held     time.Time // until then it is not dropped
}

// fewKeys are not worth a search.
const fewKeys = 64

// restFactor bounds what searches at the cap cost: the tenth part of the time.
const restFactor = 9

// NewGroup returns a Group in which each key has the rate and burst. It refuses what
// [New] refuses, an empty prefix for a name, and wrong options of [WithShaper].
func NewGroup[K ~string](client goredis.UniversalClient, prefix string, r scheduler.Rate, burst int64, p Policy, opts ...Option) (*Group[K], error) {
	c, err := configure(opts)
	if err != nil {
		return nil, err
	}
	if prefix == "" {
		return nil, errNoName
	}
	l, err := newLink(client, c)
	if err != nil {
		return nil, err
	}
	// A trial, as an option does not say what it is. Limits are refused there, too: a
	// limit is called under the lock of its one Shaper, and here there would be many.
	if _, err := shaper.NewGroup[K](r, c.shaper...); err != nil {
		return nil, fmt.Errorf("redis: WithShaper: %w", err)
	}
	g := &Group[K]{link: l, prefix: prefix, rate: r, burst: burst, policy: p, config: c, members: map[K]*member{}, sweepAt: fewKeys}
	_, err = g.newMember("") // as a trial
	return g, err
}

func (g *Group[K]) newMember(key K) (*member, error) {
	s, err := newSchedule(g.link, groupKeyring(g.prefix, string(key)), g.rate, g.burst, g.policy, g.config)
	if err != nil {
		return nil, err
	}
	sh, err := NewShaper(s, g.config.shaper...)
	if err != nil {
		return nil, err
	}
	return &member{schedule: s, shaper: sh}, nil
}

// Wait is [Shaper.Wait] for the key.
func (g *Group[K]) Wait(ctx context.Context, key K) error { return g.WaitN(ctx, key, 1) }

// WaitN is [Shaper.WaitN] for the key.
func (g *Group[K]) WaitN(ctx context.Context, key K, cost int) error {
	m, err := g.acquire(key)
	if err != nil {
		return err
	}
	defer g.release(m)
	return m.shaper.WaitN(ctx, cost)
}

// Allow is [Schedule.Allow] for the key.
func (g *Group[K]) Allow(ctx context.Context, key K, n int64) (Decision, error) {
	m, err := g.acquire(key)
	if err != nil {
		return Decision{}, err
	}
	defer g.release(m)
	return m.schedule.Allow(ctx, n)
}

// HoldUntil is [shaper.Shaper.HoldUntil] for the key, which stays in memory until then.
// With [WithSharedHold] it holds the key in all processes.
func (g *Group[K]) HoldUntil(key K, t time.Time) error {
	m, err := g.acquire(key)
	if err != nil {
		return err
	}
	defer g.release(m)
	m.shaper.HoldUntil(t)
	g.mu.Lock()
	defer g.mu.Unlock()
	m.held = later(m.held, t)
	return nil
}

// Keys returns how many keys are in memory, after all that can be have been dropped.
func (g *Group[K]) Keys() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sweepLocked()
	return len(g.members)
}

// Close refuses new calls with [ErrClosed] and waiting ones with [shaper.ErrClosed],
// and hands back what is reserved, without waiting for it. It always returns nil. Closing
// twice is fine.
func (g *Group[K]) Close() error {
	g.mu.Lock()
	members := g.members
	g.members, g.closed = nil, true
	g.mu.Unlock()
	for _, m := range members {
		_ = m.shaper.Close()
	}
	return nil
}

func (g *Group[K]) acquire(key K) (*member, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.config == nil:
		return nil, errZeroGroup
	case g.closed:
		return nil, ErrClosed
	}
	m := g.members[key]
	if m == nil {
		// At the cap each new key would have all others searched, in vain as a rule.
		if n := len(g.members); n >= g.sweepAt || n >= g.config.maxKeys && !time.Now().Before(g.rested) {
			g.sweepLocked()
		}
		if len(g.members) >= g.config.maxKeys {
			return nil, shaper.ErrTooManyKeys
		}
		var err error
		if m, err = g.newMember(key); err != nil {
			return nil, err
		}
		g.members[key] = m
	}
	m.users++
	return m, nil
}

func (g *Group[K]) release(m *member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m.users--
}

// sweepLocked drops the keys that are not in use. Below the cap its work is a constant for
// each key that was made since the last search.
func (g *Group[K]) sweepLocked() {
	now := time.Now()
	for key, m := range g.members {
		if m.users == 0 && !m.held.After(now) && m.schedule.idle() {
			_ = m.shaper.Close()
			delete(g.members, key)
		}
	}
	g.sweepAt = max(2*len(g.members), fewKeys)
	end := time.Now()
	g.rested = end.Add(restFactor * end.Sub(now))
}

// idle reports whether a new schedule would answer as this one does: all that it knows is
// in Redis.
func (s *Schedule) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config.now()
	return !s.taking && s.owed == 0 && !s.held.After(now) && (s.share == nil || !s.share.TAT().After(now))
}
