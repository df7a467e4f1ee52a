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

	mu    sync.Mutex
	keys  map[string]*refusedKey // guarded by mu
	swept time.Time              // when keys were forgotten last; guarded by mu
}

// maxRefused bounds the keys that are remembered, and forgetAfter is how long after its
// hold one of them is of no more use. A refusal of a key beyond the bound holds the key,
// as the first one does.
const (
	maxRefused  = 10_000
	forgetAfter = 10 * time.Minute
	forgetEvery = time.Minute
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

// held returns when the hold ends that the partner has set for the key, and by which
// status. Both are zero if none is in force.
func (m *refusals) held(key string, now time.Time) (until time.Time, status int) {
	if m.empty() {
		return until, 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.keys[key]; k != nil && k.until.After(now) {
		return k.until, k.status
	}
	return until, 0
}

// blame completes an error with what is known about the partner's hold, if one is in
// force. A request whose time was up may have waited for something else than the Waiter,
// or for one that does not tell.
func (t *Transport) blame(e *Error, key string, ended bool) {
	if t.pace.hold == nil {
		return
	}
	until, status := t.memory.held(key, time.Now())
	switch {
	case status == 0:
	case e.HeldUntil.IsZero():
		if ended || e.Timeout() {
			e.HeldUntil, e.Status = until, status
		}
	case !e.HeldUntil.After(until.Add(sameHold)):
		e.Status = status // otherwise somebody else's hold is longer
	}
}

// sameHold is how much two clock readings may make of the end of a hold.
const sameHold = time.Second

// refuse is told of a refusal. The key is held, and its rate cut, while the lock is held:
// so what comes later is also done later.
func (t *Transport) refuse(p *passage, status int, now time.Time) (until time.Time, moved bool) {
	m := &t.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.keys[p.key]
	known := k != nil
	if !known {
		k = &refusedKey{}
		known = t.rememberLocked(p.key, k, now)
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
		until = now.Add(min(backoff(k.backoffs), t.maxHold))
	}
	if until.After(k.until) && until.After(now) {
		k.until, k.status, k.capped, moved = until, status, p.verdict.Capped, true
		if t.pace.hold != nil {
			t.pace.hold(p.key, until)
		}
	}
	if fresh && known && t.adapts() { // who is not remembered would never grow again
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
		k.capped, k.until = false, now.Add(min(probeTime, t.maxHold))
		t.pace.hold(p.key, k.until)
	}
}

const probeTime = 10 * time.Second

// rememberLocked reports whether there is room to remember the key.
func (t *Transport) rememberLocked(key string, k *refusedKey, now time.Time) bool {
	m := &t.memory
	t.forgetLocked(now)
	if len(m.keys) >= maxRefused {
		return false
	}
	if m.keys == nil {
		m.keys = make(map[string]*refusedKey)
	}
	m.keys[key] = k
	m.size.Add(1)
	return true
}

// forget is called when a key could not be waited for: if there are too many of them,
// those at a reduced rate that nobody uses any more must not be kept for ever.
func (t *Transport) forget(now time.Time) {
	if t.memory.empty() {
		return
	}
	t.memory.mu.Lock()
	defer t.memory.mu.Unlock()
	t.forgetLocked(now)
}

// forgetLocked forgets keys that have been left alone for long, now and then. By now
// their rate would have grown again.
func (t *Transport) forgetLocked(now time.Time) {
	m := &t.memory
	if now.Sub(m.swept) < forgetEvery {
		return
	}
	m.swept = now
	for key, k := range m.keys {
		if now.Sub(k.until) <= forgetAfter || now.Sub(k.adaptive.changed) <= forgetAfter {
			continue
		}
		if k.adaptive.reduced() {
			t.pace.scale(key, 1, 1)
		}
		m.deleteLocked(key)
	}
}

func (m *refusals) deleteLocked(key string) {
	delete(m.keys, key)
	m.size.Add(-1)
}
