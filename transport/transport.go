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
// and what net/http resends below the Transport is charged to a Waiter that has, as
// *shaper.Shaper does,
//
//	Charge(cost int)
//
// An error of the Waiter may say more about itself through three optional methods,
// looked for with [errors.As]:
//
//	Timeout() bool             // refused because of a deadline or a longest allowed delay
//	WouldWait() time.Duration  // the wait that was needed; 0 means unknown
//	HeldUntil() time.Time      // the end of a hold that was in the way; zero means none
//
// The errors of x/time's Limiter have neither, and its error for a deadline that it
// cannot meet does not match [context.DeadlineExceeded]: it reaches the caller as
// an [*Error] that is no timeout.
type Waiter interface {
	Wait(ctx context.Context) error
}

// Option changes how a [Transport] works. Most need none. A nil Option is a programming
// error and panics.
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
// obtained a response. It starts no goroutine. A request that need not wait gets no
// allocation but the trace that counts its attempts, and that only if the Waiter can
// be charged for them; the base sees a copy of the request with that trace then.
//
// A Transport is safe for concurrent use if its base and its Waiter are.
type Transport struct {
	base   http.RoundTripper // nil: http.DefaultTransport
	waiter Waiter
	costs  costWaiter // the waiter again if it takes costs, else nil
	resent charger    // and again if it can be charged
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
	t.resent, _ = w.(charger)
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
	cost, err := t.admit(req)
	if err != nil {
		return nil, err
	}
	return t.send(req, cost)
}

var errNoURL = errors.New("request has no URL")

// admit returns what the request costs once it may be sent. Otherwise it closes the
// request's body and tells why not.
func (t *Transport) admit(req *http.Request) (cost int64, err error) {
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
		return 0, err
	}
	// No base can send it, so it must not take a slot from a request that can be
	// sent.
	if req.URL == nil {
		return 0, &Error{Reason: errNoURL}
	}

	arrived := time.Now()
	cost = t.costOf(req)
	if err := t.wait(ctx, cost); err != nil {
		return 0, newError(err, hostKey(req.URL), time.Since(arrived))
	}
	admitted = true
	return cost, nil
}

// send hands an admitted request to the base. What the partner answers passes here,
// so this is where it can be listened to.
func (t *Transport) send(req *http.Request, cost int64) (*http.Response, error) {
	if t.resent == nil {
		return t.Unwrap().RoundTrip(req)
	}
	counted := traced(req, t.resent, int(cost)) // wait has made sure that it fits
	resp, err := t.Unwrap().RoundTrip(counted)
	if resp != nil && resp.Request == counted {
		resp.Request = req // the caller knows no other
	}
	return resp, err
}

// Unwrap returns the base, so that code which looks for a certain transport below
// wrappers finds it.
func (t *Transport) Unwrap() http.RoundTripper {
	if t.base == nil {
		return http.DefaultTransport
	}
	return t.base
}
