package main

import (
	"context"
	"hash/maphash"
	"sync"

	xtime "golang.org/x/time/rate"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// A keyed limiter has a limit for each key, which it makes on first use.
type keyed struct {
	allow func(key string) bool
	wait  func(ctx context.Context, key string, cost int) error
	// len forgets the keys that can be forgotten and returns how many are left. It is nil
	// if nothing is ever forgotten.
	len func() int
}

// byKey are ours and what is built around x/time, which has no keys itself: a map under
// one lock, a sync.Map, and as many maps with a lock each as ours has. None of those
// forgets a key.
var byKey = []subject{
	{name: "sluice", byKey: groupOfSluice},
	{name: "xtime-mutex", byKey: func(r rate, burst, _ int) keyed { return ofLimiters(r, burst, newLocked()) }},
	{name: "xtime-syncmap", byKey: func(r rate, burst, _ int) keyed { return ofLimiters(r, burst, new(synced)) }},
	{name: "xtime-shards", byKey: func(r rate, burst, _ int) keyed { return ofLimiters(r, burst, newSharded()) }},
}

func groupOfSluice(r rate, burst, keys int) keyed {
	g := must(shaper.NewGroup[string](scheduler.Every(r.interval()),
		shaper.WithBurst(burst), shaper.WithMaxKeys(keys), shaper.WithQueue(2*burst+16)))
	return keyed{allow: g.Allow, wait: func(ctx context.Context, key string, cost int) error {
		return g.WaitN(ctx, key, cost)
	}, len: g.Len}
}

// limiters has one for each key. Keys that are new get what made returns.
type limiters interface {
	get(key string, made func() *xtime.Limiter) *xtime.Limiter
}

func ofLimiters(r rate, burst int, all limiters) keyed {
	made := func() *xtime.Limiter { return xtime.NewLimiter(xtime.Every(r.interval()), burst) }
	return keyed{
		allow: func(key string) bool { return all.get(key, made).Allow() },
		wait: func(ctx context.Context, key string, cost int) error {
			return all.get(key, made).WaitN(ctx, cost)
		},
	}
}

// locked is a map under a lock.
type locked struct {
	mu sync.Mutex
	m  map[string]*xtime.Limiter
}

func newLocked() *locked { return &locked{m: make(map[string]*xtime.Limiter)} }

func (l *locked) get(key string, made func() *xtime.Limiter) *xtime.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, ok := l.m[key]
	if !ok {
		known = made()
		l.m[key] = known
	}
	return known
}

type synced struct{ m sync.Map }

func (s *synced) get(key string, made func() *xtime.Limiter) *xtime.Limiter {
	known, ok := s.m.Load(key)
	if !ok {
		known, _ = s.m.LoadOrStore(key, made())
	}
	return known.(*xtime.Limiter)
}

// sharded has 1024 maps, as a Group for a million keys.
type sharded struct {
	seed   maphash.Seed
	shards [1024]*locked
}

func newSharded() *sharded {
	s := &sharded{seed: maphash.MakeSeed()}
	for i := range s.shards {
		s.shards[i] = newLocked()
	}
	return s
}

func (s *sharded) get(key string, made func() *xtime.Limiter) *xtime.Limiter {
	return s.shards[maphash.String(s.seed, key)%uint64(len(s.shards))].get(key, made)
}
