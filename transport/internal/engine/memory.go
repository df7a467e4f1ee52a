package engine

import (
	"sync"
	"sync/atomic"
	"time"
)

// memory remembers, for each key, what the partner's answers mean for later calls. A key is in
// it from a refusal, or from a hold, until it has been left alone for long: by then no call is
// in flight any more that was sent before.
type memory struct {
	seen  atomic.Int64              // refusals, and holds, that changed something
	size  atomic.Int64              // of keys; most of the time there is nothing to look up
	keys  sync.Map                  // of *state by string
	swept atomic.Pointer[time.Time] // when keys were forgotten last, by elapsed time
}

// maxKeys bounds the keys that are remembered. A refusal of a key beyond the bound holds the
// key, as the first one does, and cuts no rate, which would never grow again.
const (
	maxKeys     = 10_000
	forgetAfter = 10 * time.Minute
	// A key at a reduced rate is a place in a Group that others may need. By then the rate
	// would have grown again.
	forgetReduced = time.Minute
	forgetEvery   = 10 * time.Second
)

// account is the name of what is about all keys of an account.
const account = "\x00account"

// A state is what is remembered of a key, or of the account.
type state struct {
	mu sync.Mutex
	// Guarded by mu, which is held while the Waiter is told: so what comes later is also
	// done later.
	forgotten bool
	// last is what seen was at the latest refusal that changed something. Calls that were sent
	// before tell nothing new: they did not know of it.
	last     int64
	before   int64     // what last was before
	used     time.Time // when anything was heard of it
	hold     time.Time // the latest end that was told to the Waiter, to know the hold by; zero if the partner has accepted since
	told     int64     // what seen was then
	status   int       // that of the answer that has set it
	owed     bool      // the Waiter could not be told of the hold
	capped   bool      // the partner has stated more than can be held: one call tries
	trial    *trial    // that is under way, or nil
	stop     *trial    // a refusal that states no time, and whose body is not there yet, or nil
	count    count     // of what remains
	backoffs int       // refusals in a row without a time that helps
	trouble  trouble
	adaptive adaptive
}

// known returns how many refusals a call that is sent now knows of.
func (m *memory) known() int64 { return m.seen.Load() }

func (m *memory) empty() bool { return m.size.Load() == 0 }

// get returns a key with its lock taken, or nil.
func (m *memory) get(key string) *state {
	for {
		v, ok := m.keys.Load(key)
		if !ok {
			return nil
		}
		k := v.(*state)
		k.mu.Lock()
		if !k.forgotten {
			return k
		}
		k.mu.Unlock()
	}
}

// make returns a key with its lock taken, and whether it is remembered: if there are too
// many of them, it is not.
func (m *memory) make(key string) (k *state, remembered bool) {
	for {
		if k := m.get(key); k != nil {
			return k, true
		}
		k := &state{}
		k.mu.Lock()
		if m.size.Load() >= maxKeys {
			return k, false
		}
		if _, other := m.keys.LoadOrStore(key, k); !other {
			m.size.Add(1)
			return k, true
		}
	}
}

// each calls f with what is remembered of the account and of the key, in that order, until f
// reports false. The locks are taken.
func (e *Engine) each(key string, f func(name string, k *state) (more bool)) {
	if e.memory.empty() {
		return
	}
	for _, name := range [...]string{account, key} {
		if name == account && e.HoldAccount == nil {
			continue
		}
		if k := e.memory.get(name); k != nil {
			more := func() bool { defer k.mu.Unlock(); return f(name, k) }()
			if !more {
				return
			}
		}
	}
}

// Forget forgets keys that have been left alone for long, now and then.
func (e *Engine) Forget(now time.Time) {
	m := &e.memory
	last := m.swept.Load()
	if m.empty() || last != nil && now.Sub(*last) < forgetEvery {
		return
	}
	swept := now
	if !m.swept.CompareAndSwap(last, &swept) {
		return
	}
	m.keys.Range(func(key, value any) bool {
		k := value.(*state)
		k.mu.Lock()
		defer k.mu.Unlock()
		patience := forgetAfter
		if k.adaptive.reduced() {
			patience = forgetReduced
		}
		if k.forgotten || now.Sub(k.hold) < patience || now.Sub(k.used) < patience {
			return true
		}
		if k.adaptive.reduced() {
			_ = e.Scale(key.(string), 1, 1) // see Adapts
		}
		k.forgotten = true
		m.keys.Delete(key)
		m.size.Add(-1)
		return true
	})
}
