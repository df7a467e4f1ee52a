package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
)

// A payment is what is owed. Its reference is unique, and it stays the same however
// often the payment is sent.
type payment struct {
	Amount    int64  `json:"amount"` // in cents
	Currency  string `json:"currency"`
	Reference string `json:"reference"`
}

// newBatch returns a function that makes up the payments of a batch, counted from 1.
// Real ones come from a database, with the references that they have there.
func newBatch() func(i int) payment {
	batch := rand.Text()[:8]
	return func(i int) payment {
		return payment{
			Amount:    999 + int64(i),
			Currency:  "EUR",
			Reference: fmt.Sprintf("%s-%04d", batch, i),
		}
	}
}

// key returns the Idempotency-Key. It is derived from the reference, so a process
// that crashed and starts over sends the same one; a random key would have to be
// saved before the first attempt.
func (p payment) key() string {
	sum := sha256.Sum256([]byte("payment " + p.Reference))
	return hex.EncodeToString(sum[:16])
}

// request returns the request that charges the payment. Its body is a
// [bytes.Reader], of which net/http can make a copy by itself (GetBody). Together
// with the key that lets it send the request anew if a connection that was kept
// open turns out to be dead.
func (p payment) request(ctx context.Context, url string) (*http.Request, error) {
	body, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", p.key())
	return req, nil
}
