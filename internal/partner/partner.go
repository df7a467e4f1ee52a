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
//	   ├──────> refused      429, or as its Mood says: costs nothing
//	   │
//	accepted ─> processed    202 or 201
//	   ├──────> conflict     409 or 422: the Idempotency-Key belongs to another payment
//	   └──────> abandoned    503: its context ended during processing
//
// All errors are RFC 9457 problem documents. They are made of the partner's own
// words and numbers and repeat nothing that a caller sent, so they cannot give
// away a secret.
//
// The limits are measured by plain logs of arrival times that share nothing with the
// schedules whose work they judge, unless a [Rule] asks for the meters of package
// scheduler. The score is always taken from plain logs.
//
// # Misbehaviour
//
// A partner can be told to misbehave, from the start in its [Config] and at any time
// while it serves. Each kind is a value, so a test can go through all of them:
//
//	how a refusal states the time    Mood.Hint      Hints()
//	what a refusal looks like        Mood.Refusal   Refusals()
//	slow answers, a skewed clock     Mood.Slow, Mood.Skew
//	connections that fail            Partner.Break  Breaks()
//	a limit that drops               Control.SetLimit
//	refusals out of the blue         Control.Refuse
//
// For example, the next two messages are refused with an obsolete form of date, and
// the next payment finds that its kept connection was closed:
//
//	p.SMS().Misbehave(partner.Mood{Hint: partner.RetryAfterRFC850})
//	p.SMS().Refuse(2, 30*time.Second)
//	p.Break(partner.IdleClose, 1)
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

	// Breaks is how many requests fail in which way, as with [Partner.Break].
	Breaks map[Break]int

	// Window is the length of the windows of which Stats.Wire has the worst. Zero
	// means one second.
	Window time.Duration
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

	// Key tells the customers of the endpoint apart: each has the Limit for itself.
	// The zero Key treats all as one.
	Key Key

	// Misbehave is the endpoint's mood at first.
	Misbehave Mood
}

const (
	defaultSlack = 10 * time.Millisecond
	defaultKeys  = 10_000
	maxKeys      = 1_000_000
	unbounded    = math.MaxInt
)

func defaultSMS() Endpoint {
	return Endpoint{
		Limit:       Limit{Units: 10, Window: time.Second, Slack: defaultSlack},
		Concurrency: unbounded,
	}
}

func defaultPayments() Endpoint {
	return Endpoint{
		Limit:       Limit{Units: 25, Window: time.Second, Slack: defaultSlack},
		Concurrency: 5,
	}
}

// A Partner is an http.Handler that acts like a partner. Call it directly, for
// example through an in-memory http.RoundTripper, or put it on the network with
// [Partner.Start].
//
// It reads the clock with time.Now when it judges a call. In a testing/synctest
// bubble that is fake and exact, if the Partner was made in the bubble.
//
// A Partner is safe for concurrent use. Its memory is bounded by the calls of one
// window of each limit, for each of the customers that it tells apart, by the requests
// of one Config.Window and by the number of keys that it remembers. It has no
// goroutine of its own.
type Partner struct {
	mux      *http.ServeMux
	sms      *messages
	payments *payments
	wire     *wire
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
	c.SMS = c.SMS.or(defaultSMS())
	if err := c.SMS.validate("", BySender, ByHost); err != nil {
		return nil, fmt.Errorf("partner: sms: %w", err)
	}
	c.Payments = c.Payments.or(defaultPayments())
	if err := c.Payments.validate("", ByHost); err != nil {
		return nil, fmt.Errorf("partner: payments: %w", err)
	}
	for kind := range c.Breaks {
		if err := kind.validate(); err != nil {
			return nil, fmt.Errorf("partner: %w", err)
		}
	}
	if c.Window == 0 {
		c.Window = time.Second
	}
	if c.Window < 0 {
		return nil, fmt.Errorf("partner: window %v: must not be negative", c.Window)
	}

	p := &Partner{
		mux:      http.NewServeMux(),
		sms:      newMessages(c.SMS),
		payments: newPayments(c.Payments, c.Keys),
		wire:     newWire(c.Window, c.Breaks),
	}
	p.mux.HandleFunc("POST /v1/messages", p.onTheWire(p.sms.create))
	p.mux.HandleFunc("/v1/messages", p.onTheWire(p.sms.gate.wrongMethod))
	p.mux.HandleFunc("POST /v1/payments", p.onTheWire(p.payments.create))
	p.mux.HandleFunc("/v1/payments", p.onTheWire(p.payments.gate.wrongMethod))
	p.mux.HandleFunc("GET /_stats", p.serveStats)
	p.mux.HandleFunc("/_stats", func(w http.ResponseWriter, _ *http.Request) {
		methodNotAllowed(w, "GET, HEAD")
	})
	p.mux.HandleFunc("/", p.onTheWire(func(w http.ResponseWriter, _ *http.Request) {
		problem{status: http.StatusNotFound, kind: "not-found", detail: "there is nothing at this path"}.write(w)
	}))
	return p, nil
}

// ServeHTTP answers one request. It returns early if the request's context ends.
func (p *Partner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mux.ServeHTTP(w, r)
}

// Stats returns the score so far. Each endpoint's part is consistent in itself.
func (p *Partner) Stats() Stats {
	return Stats{SMS: p.sms.gate.snapshot(), Payments: p.payments.snapshot(), Wire: p.wire.snapshot()}
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

func (e Endpoint) validate(keys ...Key) error {
	if err := e.Limit.validate(); err != nil {
		return err
	}
	if e.Concurrency < 1 {
		return fmt.Errorf("concurrency %d: must be positive", e.Concurrency)
	}
	if e.Latency < 0 {
		return fmt.Errorf("latency %v: must not be negative", e.Latency)
	}
	if err := e.Key.validate(keys...); err != nil {
		return err
	}
	return e.Misbehave.validate()
}
