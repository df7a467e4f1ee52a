package engine

import "sync"

// A Budget bounds the retries of each key to a share of its first attempts.
type Budget struct {
	Share float64

	mu   sync.Mutex
	keys map[string]float64 // what may be spent, of those that have spent; guarded by mu
}

const (
	maxSaved   = 10     // what a key begins with, and has at most
	maxBudgets = 10_000 // keys at a time
)

// Deposit is called for each first attempt.
func (b *Budget) Deposit(key string) { b.add(key, b.Share) }

// Refund takes back a withdrawal: the retry was not sent.
func (b *Budget) Refund(key string) { b.add(key, 1) }

func (b *Budget) add(key string, amount float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	saved, spent := b.keys[key]
	switch {
	case !spent:
	case saved+amount >= maxSaved:
		delete(b.keys, key)
	default:
		b.keys[key] = saved + amount
	}
}

// Withdraw reports whether there is a retry left, and takes it.
func (b *Budget) Withdraw(key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	saved, spent := b.keys[key]
	if !spent {
		saved = maxSaved
		b.makeRoomLocked()
	}
	if saved < 1 {
		return false
	}
	b.keys[key] = saved - 1
	return true
}

// makeRoomLocked forgets what one key has spent, whichever, if there are too many of them.
func (b *Budget) makeRoomLocked() {
	if b.keys == nil {
		b.keys = make(map[string]float64)
	}
	for key := range b.keys {
		if len(b.keys) < maxBudgets {
			return
		}
		delete(b.keys, key)
	}
}
