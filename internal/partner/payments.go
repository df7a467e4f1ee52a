package partner

import (
	"crypto/sha256"
	"net/http"
)

// maxKey is the longest Idempotency-Key in bytes.
const maxKey = 255

// payments is the endpoint that charges payments.
type payments struct {
	gate   *gate
	ledger *ledger
}

func newPayments(e Endpoint, keys int) *payments {
	return &payments{gate: newGate(e, NoHint), ledger: newLedger(keys)}
}

type payment struct {
	Amount    int64  `json:"amount"` // in the currency's smallest unit
	Currency  string `json:"currency"`
	Reference string `json:"reference"`
}

func (p *payments) create(w http.ResponseWriter, r *http.Request) {
	arrived := p.gate.arrive()
	defer p.gate.depart()
	p.gate.stamp(w)

	pay, call, bad := p.read(w, r)
	if bad != nil {
		p.gate.spoil()
		bad.write(w)
		return
	}
	// The limits come before the key, as in a real partner's front: whatever
	// becomes of a call, it counts.
	if denied := p.gate.enter(arrived, p.gate.key.of(r, ""), 1); denied != nil {
		p.gate.refuse(w, r, denied)
		return
	}
	defer p.gate.leave()

	verdict, charged := p.ledger.begin(call)
	if verdict != fresh {
		p.gate.linger(r.Context(), w, p.gate.slow())
		p.gate.stamp(w)
	}
	switch verdict {
	case replay:
		w.Header().Set("Idempotent-Replayed", "true")
		writeJSON(w, http.StatusCreated, charged)
		return
	case reused:
		unprocessable("the Idempotency-Key was used for a payment with another body").write(w)
		return
	case busy:
		problem{
			status: http.StatusConflict,
			kind:   "conflict",
			detail: "a payment with this Idempotency-Key is still being processed",
		}.write(w)
		return
	}

	worked := p.gate.work(r.Context(), w)
	p.gate.stamp(w)
	if !worked {
		p.ledger.abandon(call)
		abandoned().write(w)
		return
	}
	writeJSON(w, http.StatusCreated, p.ledger.settle(call, pay))
}

// read returns the payment that r brings, and what tells its call from others.
func (p *payments) read(w http.ResponseWriter, r *http.Request) (pay payment, c call, bad *problem) {
	keys := r.Header.Values("Idempotency-Key")
	if len(keys) != 1 || keys[0] == "" || len(keys[0]) > maxKey {
		return pay, c, badRequest("there must be one Idempotency-Key of 1 to 255 bytes")
	}
	body, bad := readJSON(w, r, &pay)
	if bad != nil {
		return pay, c, bad
	}
	if pay.Amount <= 0 {
		return pay, c, unprocessable("amount must be a positive number of the currency's smallest unit")
	}
	if !isCurrency(pay.Currency) {
		return pay, c, unprocessable("currency must be three capital letters")
	}
	return pay, call{key: sha256.Sum256([]byte(keys[0])), body: sha256.Sum256(body)}, nil
}

// isCurrency tells whether s has the form of an ISO 4217 code.
func isCurrency(s string) bool {
	if len(s) != 3 {
		return false
	}
	for i := range len(s) {
		if s[i] < 'A' || s[i] > 'Z' {
			return false
		}
	}
	return true
}

// snapshot returns the score. While calls are being processed, they are accepted
// but have no outcome yet.
func (p *payments) snapshot() PaymentScore {
	s := PaymentScore{}
	p.ledger.count(&s)
	s.Score = p.gate.snapshot()
	return s
}
