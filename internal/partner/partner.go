// Package partner is a partner to test against: an HTTP handler with an SMS and a
// payments endpoint that enforces its limits strictly and keeps score of what its
// callers did.
//
//	POST /v1/messages  send a text message; costs one unit for each of its parts
//	POST /v1/payments  charge a payment once for each Idempotency-Key; costs one unit
//	GET  /_stats       the score, as JSON; costs nothing
//
// A request passes through an endpoint like this:
//
//	arrives ──> bad          405, 415, 413, 400 or 422: not a call, costs nothing
//	   │
//	   ├──────> refused      429: too many units or calls at a time, costs nothing
//	   │
//	accepted ─> processed    202 or 201
//	   ├──────> conflict     409 or 422: the Idempotency-Key belongs to another payment
//	   └──────> abandoned    503: its context ended during processing
//
// All errors are RFC 9457 problem documents. They are made of the partner's own
// words and numbers and repeat nothing that a caller sent, so they cannot give
// away a secret.
//
// The limits are measured by plain logs of arrival times that share nothing with
// the schedules whose work they judge.
package partner

import (
	"fmt"
	"math"
	"net/http"
	"time"
)

// A Config states how a partner behaves. The zero Config is a valid one.
type Config struct {
	// SMS is the endpoint for messages. By default it takes 10 parts in any
	// second with a Slack of 10 ms, and any number of calls at a time.
	SMS Endpoint

	// Payments is the endpoint for payments. By default it takes 25 calls in any
	// second with a Slack of 10 ms, and 5 calls at a time.
	Payments Endpoint

	// Keys is how many Idempotency-Keys of settled payments are remembered before
	// the oldest is forgotten, at most 1,000,000. Zero means 10,000.
	Keys int
}

// An Endpoint states how a partner treats the calls of one kind.
type Endpoint struct {
	// Limit is what the endpoint enforces. The zero Limit means its default.
	Limit Limit

	// Concurrency is how many calls are processed at the same time; a call beyond
	// is refused. Zero means the endpoint's default.
	Concurrency int

	// Latency is how long an accepted call is processed. Replays and conflicts
	// are answered at once.
	Latency time.Duration
}

const (
	defaultSlack = 10 * time.Millisecond
	defaultKeys  = 10_000
	maxKeys      = 1_000_000
	unbounded    = math.MaxInt
)

// A Partner is an http.Handler that acts like a partner. Call it directly, for
// example through an in-memory http.RoundTripper, or put it on the network with
// [Partner.Start].
//
// It reads the clock with time.Now when it judges a call. In a testing/synctest
// bubble that is fake and exact, if the Partner was made in the bubble.
//
// A Partner is safe for concurrent use. Its memory is bounded by the calls of one
// window of each limit and by the number of keys that it remembers. It has no
// goroutine of its own.
type Partner struct {
	mux      *http.ServeMux
	sms      *messages
	payments *payments
}

// New returns a Partner that behaves as stated. The error names the first value
// that makes no sense.
func New(c Config) (*Partner, error) {
	if c.Keys == 0 {
		c.Keys = defaultKeys
	}
	if c.Keys < 0 || c.Keys > maxKeys {
		return nil, fmt.Errorf("partner: keys %d: must be from 1 to %d", c.Keys, maxKeys)
	}
	c.SMS = c.SMS.or(Endpoint{
		Limit:       Limit{Units: 10, Window: time.Second, Slack: defaultSlack},
		Concurrency: unbounded,
	})
	if err := c.SMS.validate(); err != nil {
		return nil, fmt.Errorf("partner: sms: %w", err)
	}
	c.Payments = c.Payments.or(Endpoint{
		Limit:       Limit{Units: 25, Window: time.Second, Slack: defaultSlack},
		Concurrency: 5,
	})
	if err := c.Payments.validate(); err != nil {
		return nil, fmt.Errorf("partner: payments: %w", err)
	}

	p := &Partner{
		mux:      http.NewServeMux(),
		sms:      newMessages(c.SMS),
		payments: newPayments(c.Payments, c.Keys),
	}
	p.mux.HandleFunc("POST /v1/messages", p.sms.create)
	p.mux.HandleFunc("/v1/messages", p.sms.gate.wrongMethod)
	p.mux.HandleFunc("POST /v1/payments", p.payments.create)
	p.mux.HandleFunc("/v1/payments", p.payments.gate.wrongMethod)
	p.mux.HandleFunc("GET /_stats", p.serveStats)
	p.mux.HandleFunc("/_stats", func(w http.ResponseWriter, _ *http.Request) {
		methodNotAllowed(w, "GET, HEAD")
	})
	p.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		problem{status: http.StatusNotFound, kind: "not-found", detail: "there is nothing at this path"}.write(w)
	})
	return p, nil
}

// ServeHTTP answers one request. It returns early if the request's context ends.
func (p *Partner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mux.ServeHTTP(w, r)
}

// Stats returns the score so far. Each endpoint's part is consistent in itself.
func (p *Partner) Stats() Stats {
	return Stats{SMS: p.sms.gate.snapshot(), Payments: p.payments.snapshot()}
}

func (p *Partner) serveStats(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, p.Stats())
}

// or fills in what e leaves out.
func (e Endpoint) or(d Endpoint) Endpoint {
	if e.Limit == (Limit{}) {
		e.Limit = d.Limit
	}
	if e.Concurrency == 0 {
		e.Concurrency = d.Concurrency
	}
	return e
}

func (e Endpoint) validate() error {
	if err := e.Limit.validate(); err != nil {
		return err
	}
	if e.Concurrency < 1 {
		return fmt.Errorf("concurrency %d: must be positive", e.Concurrency)
	}
	if e.Latency < 0 {
		return fmt.Errorf("latency %v: must not be negative", e.Latency)
	}
	return nil
}
