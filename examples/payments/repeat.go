package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/sluice-go/sluice/examples/internal/call"
	"github.com/sluice-go/sluice/internal/partner"
)

// repeat sends a payment that was charged once more, as if its answer had been
// lost. It reports whether nothing went wrong with that.
func (c *charger) repeat(ctx context.Context, w io.Writer) bool {
	if c.example.id == "" || ctx.Err() != nil {
		return true // there is nothing to repeat, or no time for it
	}
	p := c.example.payment
	a := c.post(ctx, p)
	switch {
	case a.Outcome == call.Unsent:
		return true
	case a.Outcome != call.Accepted:
		fmt.Fprintf(w, "payment %s, sent again with its key: %s\n", p.Reference, a.Reason())
		return false
	case chargeID(a) != c.example.id:
		fmt.Fprintf(w, "payment %s, sent again with its key: charged twice, as %s and %s\n",
			p.Reference, c.example.id, chargeID(a))
		return false
	}
	fmt.Fprintf(w, "payment %s, sent again with its key: %s as before, nothing charged\n", p.Reference, c.example.id)
	return true
}

// printScore prints what the partner itself counted, if it tells. It reports whether
// the partner knows of no payment that was charged twice. The question is not one
// of the calls that are paced.
func printScore(ctx context.Context, base http.RoundTripper, url string, w io.Writer) bool {
	req, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, url+"/_stats", nil)
	if err != nil {
		return true
	}
	a := call.New(context.WithoutCancel(ctx), req, 0).Do(&http.Client{Transport: base})
	var score partner.Stats
	if a.Outcome != call.Accepted || json.Unmarshal(a.Body, &score) != nil {
		fmt.Fprintln(w, "the partner tells no score")
		return true
	}
	s := score.Payments
	fmt.Fprintf(w, "partner's own score: charges %d, replays %d, duplicate_charges %d, refused %d\n",
		s.Charges, s.Replays, s.DuplicateCharges, s.Refused)
	fmt.Fprintf(w, "                     worst second %d calls, counting both ends; highest concurrency %d\n",
		s.WorstWindow, s.HighestConcurrency)
	return s.DuplicateCharges == 0
}
