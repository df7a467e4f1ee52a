package transport

import (
	"sync"
	"sync/atomic"
	"time"
)

// refusals remembers, for each key, what the partner's refusals mean for later requests.
// A key is in it from a refusal until it has been left alone for long: by then no request
// is in flight any more that was sent before the refusal.
type refusals struct {
	seen  atomic.Int64              // refusals that changed something
	size  atomic.Int64              // of keys; most of the time there is nothing to look up
	keys  sync.Map                  // of *refusedKey by string
	swept atomic.Pointer[time.Time] // when keys were forgotten last, by elapsed time
}

// maxRefused bounds the keys that are remembered. A refusal of a key beyond the bound
// holds the key, as the first one does, and cuts no rate, which would never grow again.
const (
	maxRefused  = 10_000
	forgetAfter = 10 * time.Minute
	// A key at a reduced rate is a place in a Group that others may need. By then the rate
	// would have grown again.
	forgetReduced = time.Minute
	forgetEvery   = 10 * time.Second
)

type refusedKey struct {
	mu sync.Mutex
	// Guarded by mu, which is held while the Waiter is told: so what comes later is also
	// done later.
	forgotten bool
	// last is what seen was at the latest refusal that changed something. Requests that
	// were sent before tell nothing new: they did not know of it.
	last     int64
	before   int64     // what last was before
	used     time.Time // when anything was heard of it
	until    time.Time // the end of the hold; zero if the partner has accepted since
	status   int       // that of the refusal which has set until
	owed     bool      // the Waiter could not be told of the hold
	capped   bool      // the partner has stated more than can be held: one request tries
	trial    *trial    // that is under way, or nil
	stop     *trial    // a refusal that states no time, and whose body is not there yet, or nil
	backoffs int       // refusals in a row without a time that helps
	trouble  trouble
	adaptive adaptive
}

// known returns how many refusals a request that is sent now knows of.
func (m *refusals) known() int64 { return m.seen.Load() }

func (m *refusals) empty() bool { return m.size.Load() == 0 }

// get returns a key with its lock taken, or nil.
func (m *refusals) get(key string) *refusedKey {
	for {
		v, ok := m.keys.Load(key)
		if !ok {
			return nil
		}
		k := v.(*refusedKey)
		k.mu.Lock()
		if !k.forgotten {
			return k
		}
		k.mu.Unlock()
	}
}

// make returns a key with its lock taken, and whether it is remembered: if there are too
// many of them, it is not.
func (m *refusals) make(key string) (k *refusedKey, remembered bool) {
	for {
		if k := m.get(key); k != nil {
			return k, true
		}
		k := &refusedKey{}
		k.mu.Lock()
		if m.size.Load() >= maxRefused {
			return k, false
		}
		if _, other := m.keys.LoadOrStore(key, k); !other {
			m.size.Add(1)
			return k, true
		}
	}
}

// held returns when the hold ends that the partner has set for the key, and by which
// status. Both are zero if none is in force.
func (m *refusals) held(key string, now time.Time) (until time.Time, status int) {
	if m.empty() {
		return until, 0
	}
	k := m.get(key)
	if k == nil {
		return until, 0
	}
	defer k.mu.Unlock()
	if k.until.After(now) {
		return k.until, k.status
	}
	return until, 0
}

// blame completes an error with what is known about the partner's hold, if one is in
// force. A request whose time was up may have waited for something else than the Waiter,
// or for one that does not tell.
func (t *Transport) blame(e *Error, key string, ended bool) {
	if t.waiter.hold == nil {
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
		e.Status = status // otherwise it is a longer hold that others have set
	}
}

// sameHold is how much two clock readings may make of the end of a hold.
const sameHold = time.Second

// refuse is told of a refusal. It returns until when the key is held, and whether the
// refusal has made that later.
func (t *Transport) refuse(p *passage, status int, now time.Time) (until time.Time, moved bool) {
	m := &t.memory
	t.forget(now)
	k, remembered := m.make(p.key)
	defer k.mu.Unlock()
	k.used = now
	if p.verdict.Trouble && !k.trouble.refused() {
		p.alone = true
		return k.until, false
	}
	fresh := p.known >= k.last
	if fresh {
		k.before, k.last = k.last, m.seen.Add(1)
		k.trouble.counted(p.verdict.Trouble)
	}
	until = k.waitLocked(p, fresh, now, t.maxHold)
	if until.After(now) {
		// The Waiter holds forward only, by itself. Its hold may have been lifted by hand,
		// so it is told of each, also of one that is shorter than what is known here.
		err := t.tellHold(p.key, until)
		lifted := fresh && k.until.After(now) // otherwise it could not have been sent
		if until.After(k.until) || lifted {
			moved = t.waiter.hold != nil
			k.until, k.status, k.capped, k.owed = until, status, p.verdict.Capped, err != nil
		}
	}
	if fresh && remembered && t.adapts() {
		k.adaptive.cut(now, t.floor)
		t.waiter.scale(p.key, k.adaptive.share, wholeShare)
	}
	return k.until, moved
}

// waitLocked returns until when a refusal keeps the key back.
func (k *refusedKey) waitLocked(p *passage, fresh bool, now time.Time, most time.Duration) time.Time {
	v := p.verdict
	if v.Stated && v.Wait > 0 {
		k.backoffs = 0
		return now.Add(v.Wait)
	}
	if !fresh {
		return now // a sibling of the one that has been counted
	}
	k.backoffs++
	n := k.backoffs
	if v.Stated {
		// "Now" is believed once. A partner that says so again and again is not asked again
		// and again.
		if n--; n == 0 {
			return now
		}
	}
	return now.Add(min(max(backoff(n), v.AtLeast), most))
}

func (t *Transport) tellHold(key string, until time.Time) error {
	if t.waiter.hold == nil {
		return nil
	}
	return t.waiter.hold(key, until)
}

// accept is told of an answer that is no refusal.
func (t *Transport) accept(p *passage, now time.Time) {
	k := t.memory.get(p.key)
	if k == nil {
		return
	}
	defer k.mu.Unlock()
	k.trouble.served() // now, whenever it was sent
	if p.known < k.last {
		if p.known >= k.before && k.trouble.falseAlarm() {
			k.backoffs = 1
		}
		return
	}
	k.trouble.alarm = false
	k.used = now
	k.backoffs, k.until, k.status, k.capped, k.owed = 0, time.Time{}, 0, false, false
	if t.adapts() && k.adaptive.grow(now) {
		t.waiter.scale(p.key, k.adaptive.share, wholeShare)
	}
}

// forget forgets keys that have been left alone for long, now and then.
func (t *Transport) forget(now time.Time) {
	m := &t.memory
	last := m.swept.Load()
	if m.empty() || last != nil && now.Sub(*last) < forgetEvery {
		return
	}
	swept := now
	if !m.swept.CompareAndSwap(last, &swept) {
		return
	}
	m.keys.Range(func(key, value any) bool {
		k := value.(*refusedKey)
		k.mu.Lock()
		defer k.mu.Unlock()
		patience := forgetAfter
		if k.adaptive.reduced() {
			patience = forgetReduced
		}
		if k.forgotten || now.Sub(k.until) < patience || now.Sub(k.used) < patience {
			return true
		}
		if k.adaptive.reduced() {
			t.waiter.scale(key.(string), 1, 1)
		}
		k.forgotten = true
		m.keys.Delete(key)
		m.size.Add(-1)
		return true
	})
}
