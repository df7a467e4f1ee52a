package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/sluice-go/sluice/examples/internal/call"
)

// A charger charges payments through a client whose transport paces.
type charger struct {
	client *http.Client
	url    string
	stderr io.Writer

	mu      sync.Mutex
	asked   int
	charged int
	refused int
	failed  int
	unsent  int
	example receipt // of one payment that was charged
}

// A receipt is a payment and what the partner calls it.
type receipt struct {
	payment payment
	id      string
}

// chargeAll charges n payments, until ctx ends. It returns when everything that has
// left is answered.
func (c *charger) chargeAll(ctx context.Context, n int) {
	c.asked = n
	// Payments that wait for their turn count too, and that is no loss: as long as
	// fewer than five are at the partner's, there is one in the line to leave next.
	// Which of them is first does not matter here; where it does, hand them over one
	// by one, as the sms example does.
	var underWay errgroup.Group
	underWay.SetLimit(atATime)
	payment := newBatch()
	begun := 0
	for begun < n && ctx.Err() == nil {
		begun++
		p := payment(begun)
		underWay.Go(func() error {
			c.charge(ctx, p)
			return nil
		})
	}
	if ctx.Err() != nil {
		c.say("payments: interrupted; waiting for the answers to what has left (again: kill)")
	}
	_ = underWay.Wait()
	c.unsent += n - begun
}

func (c *charger) charge(ctx context.Context, p payment) {
	a := c.post(ctx, p)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch a.Outcome {
	case call.Accepted:
		c.charged++
		if c.example.id == "" {
			c.example = receipt{p, chargeID(a)}
		}
		return
	case call.Unsent:
		c.unsent++
		return
	case call.Refused:
		c.refused++
	case call.Failed:
		c.failed++
	}
	fmt.Fprintf(c.stderr, "payment %s: %s\n", p.Reference, a.Reason())
}

func (c *charger) post(ctx context.Context, p payment) call.Answer {
	req, err := p.request(ctx, c.url)
	if err != nil {
		return call.Answer{Outcome: call.Failed, Err: err}
	}
	return call.New(ctx, req, 1).Do(c.client)
}

// chargeID returns what the partner calls the charge, or nothing if it does not
// say.
func chargeID(a call.Answer) string {
	var charge struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(a.Body, &charge)
	return charge.ID
}

func (c *charger) say(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintln(c.stderr, text)
}

// report writes what became of the payments.
func (c *charger) report(w io.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(w, "%-14s %d of %d\n", "sent", c.asked-c.unsent, c.asked)
	fmt.Fprintf(w, "%-14s %d\n", "charged", c.charged)
	fmt.Fprintf(w, "%-14s %d\n", "refused", c.refused)
	fmt.Fprintf(w, "%-14s %d\n", "failed", c.failed)
	fmt.Fprintf(w, "%-14s %d\n", "unsent", c.unsent)
}
