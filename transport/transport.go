package transport

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Waiter decides when a request may leave.
//
// Wait blocks until one unit may leave and returns nil, or returns why it may not.
// It must be safe for concurrent use and must return when ctx ends. A cost other
// than 1 needs a Waiter that has, as *shaper.Shaper and *rate.Limiter do,
//
//	WaitN(ctx context.Context, cost int) error
//
// An error of the Waiter may say more about itself through two optional methods,
// looked for with [errors.As]:
//
//	Timeout() bool             // refused because of a deadline or a longest allowed delay
//	WouldWait() time.Duration  // the wait that was needed; 0 means unknown
//
// The errors of x/time's Limiter have neither, and its error for a deadline that it
// cannot meet does not match [context.DeadlineExceeded]: it reaches the caller as
// an [*Error] that is no timeout.
type Waiter interface {
	Wait(ctx context.Context) error
}

// Option changes how a [Transport] works. Most need none.
type Option func(*config)

type config struct {
	cost func(*http.Request) int64
}

// Transport is an [http.RoundTripper] that lets each request wait its turn before
// it is sent. Start with [New]; the zero Transport has no Waiter and cannot be
// used.
//
// It keeps the contract of [http.RoundTripper] to the letter: the request is never
// changed, its body is closed on every path, and err is nil whenever the base
// obtained a response. It starts no goroutine and adds no allocation to a request
// that need not wait.
//
// A Transport is safe for concurrent use if its base and its Waiter are.
type Transport struct {
	base   http.RoundTripper // nil: http.DefaultTransport
	waiter Waiter
	costs  costWaiter // the waiter again if it takes costs, else nil
	config
}

// New returns a Transport that sends requests through base when w says so.
//
// A nil base means [http.DefaultTransport] as it is at the time of each request.
// New panics if w is nil: a Transport without a pace is a mistake in the program,
// and sending unpaced would hide it.
func New(base http.RoundTripper, w Waiter, opts ...Option) *Transport {
	if w == nil {
		panic("transport: New called with a nil Waiter")
	}
	t := &Transport{base: base, waiter: w}
	t.costs, _ = w.(costWaiter)
	for _, opt := range opts {
		opt(&t.config)
	}
	return t
}

// RoundTrip waits for the request's turn and then sends it through the base.
//
// If the request's context has ended before the call, the plain error of that
// context is returned. Any other reason not to send is returned as an [*Error],
// never wrapped. Once the base has the request, its answer is returned as it came,
// and closing the request's body is the base's duty.
//
// Only the context ends a wait: the deprecated channel Request.Cancel is left to
// the base.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := t.admit(req); err != nil {
		return nil, err
	}
	return t.send(req)
}

var errNoURL = errors.New("request has no URL")

// admit returns nil once the request may be sent. Otherwise it closes the request's
// body and tells why not.
func (t *Transport) admit(req *http.Request) error {
	// Deferred, so that a Waiter or a cost function that panics leaks no body
	// either.
	admitted := false
	defer func() {
		if !admitted && req.Body != nil {
			req.Body.Close()
		}
	}()

	// Asked before the Waiter is: a caller who gave up has nothing to learn about
	// the pace.
	ctx := req.Context()
	if err := ctx.Err(); err != nil {
		return err
	}
	// No base can send it, so it must not take a slot from a request that can be
	// sent.
	if req.URL == nil {
		return &Error{Reason: errNoURL}
	}

	arrived := time.Now()
	if err := t.wait(ctx, t.costOf(req)); err != nil {
		return newError(err, hostKey(req.URL), time.Since(arrived))
	}
	admitted = true
	return nil
}

// send hands an admitted request to the base.
func (t *Transport) send(req *http.Request) (*http.Response, error) {
	return t.Unwrap().RoundTrip(req)
}

// Unwrap returns the base, so that code which looks for a certain transport below
// wrappers finds it.
func (t *Transport) Unwrap() http.RoundTripper {
	if t.base == nil {
		return http.DefaultTransport
	}
	return t.base
}
