package partner

import (
	"crypto/sha256"
	"fmt"
	"sync"
)

// A digest stands for a caller's text, so that what is remembered is small and
// gives no secret away.
type digest [sha256.Size]byte

// A call is what decides whether a payment is a new one.
type call struct {
	key  digest
	body digest
}

// A verdict says what a call means to the ledger.
type verdict int

const (
	fresh  verdict = iota // a new payment: settle or abandon must follow
	replay                // settled before, with this answer
	reused                // the key belongs to another body
	busy                  // the same payment is still being processed
)

// A charge is the answer to a payment.
type charge struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

type settled struct {
	body   digest
	charge charge
}

// A ledger charges each key once, for as long as it remembers the key. A call that
// is being processed is never forgotten. It is safe for concurrent use.
type ledger struct {
	mu         sync.Mutex
	pending    map[digest]digest // key to body; bounded by the gate's concurrency
	settled    *memory[digest, settled]
	references *memory[digest, struct{}]

	charges    int64
	replays    int64
	conflicts  int64
	duplicates int64
}

func newLedger(keys int) *ledger {
	return &ledger{
		pending: make(map[digest]digest),
		settled: newMemory[digest, settled](keys),
		// References outlive keys, so that a charge which is repeated because its
		// key was forgotten is noticed.
		references: newMemory[digest, struct{}](10 * keys),
	}
}

// begin decides about a call. The charge is set for a replay only.
func (l *ledger) begin(c call) (verdict, charge) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, ok := l.settled.get(c.key); ok {
		if s.body != c.body {
			l.conflicts++
			return reused, charge{}
		}
		l.replays++
		return replay, s.charge
	}
	if body, ok := l.pending[c.key]; ok {
		l.conflicts++
		if body != c.body {
			return reused, charge{}
		}
		return busy, charge{}
	}
	l.pending[c.key] = c.body
	return fresh, charge{}
}

// abandon ends a fresh call without a charge: the key is as new.
func (l *ledger) abandon(c call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pending, c.key)
}

// settle ends a fresh call with a charge.
func (l *ledger) settle(c call, pay payment) charge {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.charges++
	if pay.Reference != "" {
		reference := sha256.Sum256([]byte(pay.Reference))
		if _, ok := l.references.get(reference); ok {
			l.duplicates++
		}
		l.references.put(reference, struct{}{})
	}
	ch := charge{
		ID:       fmt.Sprintf("pay_%06d", l.charges),
		Status:   "succeeded",
		Amount:   pay.Amount,
		Currency: pay.Currency,
	}
	delete(l.pending, c.key)
	l.settled.put(c.key, settled{c.body, ch})
	return ch
}

// count fills in the ledger's part of the score.
func (l *ledger) count(s *PaymentScore) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.Charges = l.charges
	s.Replays = l.replays
	s.Conflicts = l.conflicts
	s.DuplicateCharges = l.duplicates
}
