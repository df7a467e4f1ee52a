package grpcpace

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/transport/feedback"
)

// refusals remembers, for each key, how often it was refused in a row. A key is in it from
// a refusal until an RPC that was sent afterwards succeeds.
type refusals struct {
	seen atomic.Int64 // refusals that changed something
	size atomic.Int64 // of keys; most of the time there is nothing to look up

	mu   sync.Mutex
	keys map[string]*refusedKey // guarded by mu
}

// maxRefused bounds the keys that are remembered, and forgetAfter is how long after its
// hold one of them is of no more use. A refusal of a key beyond the bound holds the key,
// as a first one does.
const (
	maxRefused  = 10_000
	forgetAfter = 10 * time.Minute
)

type refusedKey struct {
	// last is what seen was at the latest refusal that changed something. RPCs that were
	// sent before did not know of it, so their refusals are no further step.
	last     int64
	until    time.Time // the end of the hold
	backoffs int       // refusals in a row without a stated time
}

// known returns how many refusals an RPC that is sent now knows of.
func (m *refusals) known() int64 { return m.seen.Load() }

// refuse is told of a refusal. The key is held while the lock is: so what comes later is
// also done later, and a hold only moves forward.
func (p *Pacer) refuse(pass *passage, v feedback.Verdict, now time.Time) {
	m := &p.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.keyLocked(pass.key, now)
	fresh := pass.known >= k.last
	if fresh {
		k.last = m.seen.Add(1)
	}
	var until time.Time
	switch {
	case v.Stated:
		until = now.Add(min(v.Wait, p.maxHold))
	case fresh:
		k.backoffs++
		until = now.Add(min(backoff(k.backoffs), p.maxHold))
	}
	if until.After(k.until) && until.After(now) {
		k.until = until
		if p.waiter.hold != nil {
			p.waiter.hold(pass.key, until)
		}
	}
}

// accept is told of an RPC that succeeded.
func (p *Pacer) accept(pass *passage) {
	m := &p.memory
	if m.size.Load() == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.keys[pass.key]; k != nil && pass.known >= k.last {
		delete(m.keys, pass.key)
		m.size.Add(-1)
	}
}

// keyLocked returns what is known of a key. It is not kept if there is no more room.
func (m *refusals) keyLocked(key string, now time.Time) *refusedKey {
	if k := m.keys[key]; k != nil {
		return k
	}
	k := &refusedKey{}
	if len(m.keys) >= maxRefused {
		for key, k := range m.keys {
			if now.Sub(k.until) > forgetAfter {
				delete(m.keys, key)
				m.size.Add(-1)
			}
		}
	}
	if len(m.keys) >= maxRefused {
		return k
	}
	if m.keys == nil {
		m.keys = make(map[string]*refusedKey)
	}
	m.keys[key] = k
	m.size.Add(1)
	return k
}

const (
	firstBackoff = time.Second
	maxBackoff   = time.Minute
)

// backoff returns how long to stay away after the n-th refusal in a row that states no
// time: 1 s, doubled each time, up to a minute. Up to a quarter comes on top, so that
// processes which were refused together do not come back together.
func backoff(n int) time.Duration {
	d := maxBackoff
	if n < 7 {
		d = firstBackoff << (n - 1)
	}
	return min(d+rand.N(d/4), maxBackoff)
}
