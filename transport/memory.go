package transport

import (
	"sync"
	"sync/atomic"
	"time"
)

// refusals remembers, for each key, what the partner's refusals mean for later requests.
// A key is in it from a refusal until an answer to a request that was sent afterwards.
type refusals struct {
	seen atomic.Int64 // refusals that changed something
	size atomic.Int64 // of keys; most of the time there is nothing to look up

	mu   sync.Mutex
	keys map[string]*refusedKey // guarded by mu
}

// maxRefused bounds the keys that are remembered, and forgetAfter is how long after its
// hold one of them is of no more use. A refusal of a key beyond the bound holds the key,
// as the first one does.
const (
	maxRefused  = 10_000
	forgetAfter = 10 * time.Minute
)

type refusedKey struct {
	// last is what seen was at the latest refusal that changed something. Requests that
	// were sent before tell nothing new: they did not know of it.
	last     int64
	until    time.Time // the end of the hold
	status   int       // that of the refusal which has set until
	capped   bool      // the partner has stated more than can be held
	backoffs int       // refusals in a row without a stated time
	adaptive adaptive
}

// known returns how many refusals whoever sends a request now knows of.
func (m *refusals) known() int64 { return m.seen.Load() }

func (m *refusals) empty() bool { return m.size.Load() == 0 }

// status returns the status by which the partner has set the hold of the key.
func (m *refusals) status(key string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.keys[key]; k != nil {
		return k.status
	}
	return 0
}

// refuse is told of a refusal. The key is held, and its rate cut, while the lock is held:
// so what comes later is also done later.
func (t *Transport) refuse(p *passage, status int, now time.Time) (until time.Time, moved bool) {
	m := &t.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.keys[p.key]
	if k == nil {
		k = &refusedKey{}
		m.addLocked(p.key, k, now)
	}
	fresh := p.known >= k.last
	if fresh {
		k.last = m.seen.Add(1)
	}
	switch {
	case p.verdict.Stated:
		until = now.Add(p.verdict.Wait)
	case fresh:
		k.backoffs++
		until = now.Add(backoff(k.backoffs))
	}
	if until.After(k.until) && until.After(now) {
		k.until, k.status, k.capped, moved = until, status, p.verdict.Capped, true
		if t.pace.hold != nil {
			t.pace.hold(p.key, until)
		}
	}
	if fresh && t.adapts() {
		k.adaptive.cut(now, t.floor)
		t.pace.scale(p.key, k.adaptive.share, wholeShare)
	}
	return k.until, moved
}

// accept is told of an answer that is no refusal.
func (t *Transport) accept(p *passage, now time.Time) {
	m := &t.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.keys[p.key]
	if k == nil || p.known < k.last {
		return
	}
	k.backoffs = 0
	if t.adapts() && k.adaptive.grow(now) {
		t.pace.scale(p.key, k.adaptive.share, wholeShare)
	}
	if !k.adaptive.reduced() && !k.until.After(now) {
		m.deleteLocked(p.key)
	}
}

// probe is told that a request leaves. The first one behind a hold that was capped goes
// alone: nobody can tell that the time the partner stated has not come yet, so the others
// wait a little for its answer.
func (t *Transport) probe(p *passage) {
	m := &t.memory
	if t.pace.hold == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.keys[p.key]
	if now := time.Now(); k != nil && k.capped && !k.until.After(now) {
		k.capped = false
		t.pace.hold(p.key, now.Add(min(probeTime, t.maxHold)))
	}
}

const probeTime = 10 * time.Second

func (m *refusals) addLocked(key string, k *refusedKey, now time.Time) {
	if len(m.keys) >= maxRefused {
		for key, k := range m.keys {
			if now.Sub(k.until) > forgetAfter && !k.adaptive.reduced() {
				m.deleteLocked(key)
			}
		}
	}
	if len(m.keys) >= maxRefused {
		return
	}
	if m.keys == nil {
		m.keys = make(map[string]*refusedKey)
	}
	m.keys[key] = k
	m.size.Add(1)
}

func (m *refusals) deleteLocked(key string) {
	delete(m.keys, key)
	m.size.Add(-1)
}
