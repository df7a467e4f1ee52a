package transport

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/sluice-go/sluice/transport/internal/engine"
)

// Transport is an [http.RoundTripper] that lets each request wait its turn before
// it is sent, and holds the line when the partner refuses one. Start with [New], or with
// [NewKeyed] for a pace of its own for each partner; the zero Transport has no Waiter and
// cannot be used.
//
// It keeps the contract of [http.RoundTripper] to the letter: the request is never
// changed, its body is closed on every path, and err is nil whenever a response was
// obtained: a refusal of the partner's is a response. It starts no goroutine, but to read an
// answer ahead: one that a Classifier wants to see the body of, a refusal before a retry, and
// an error answer that would keep a place in flight. With [New] and no option that has to
// look at each request or answer, a request that need not wait costs no allocation but those
// of counting its attempts on the wire, and those only above net/http; the base sees a copy
// of the request then.
//
// A Transport is safe for concurrent use if its base and its Waiter are.
type Transport struct {
	base   http.RoundTripper
	key    func(*http.Request) string
	keyed  bool
	engine engine.Engine
	simple bool            // a request can leave by LeaveNow, and has nothing to be asked about
	counts *attemptCounter // nil: there is no way to charge
	config
}

// New returns a Transport that sends requests through base when w says so. All requests
// share the one pace, and what one partner refuses holds them all: for several partners
// there is [NewKeyed].
//
// A nil base means [http.DefaultTransport] as it is when New is called. So the Transport can
// become http.DefaultTransport itself, and one that is made after it sends through it.
//
// New panics if w is nil: a Transport without a Waiter is a mistake in the program,
// and sending unpaced would hide it. It also panics if w cannot do what an option needs.
func New(base http.RoundTripper, w Waiter, opts ...Option) *Transport {
	if w == nil {
		panic("transport: New called with a nil Waiter")
	}
	return newTransport(base, func(*http.Request) string { return "" }, false, engine.Of(w), opts)
}

// NewKeyed returns a Transport that sends requests through base when g says so for their
// key. A nil key function means [HostKey]: a pace for each partner's host. Keys get into
// errors and traces, so they should hold no secrets: a short hash of a credential does as
// well as the credential.
//
// A nil base means [http.DefaultTransport] as it is when NewKeyed is called. NewKeyed panics
// if g is nil, or cannot do what an option needs.
func NewKeyed(base http.RoundTripper, key func(*http.Request) string, g KeyedWaiter, opts ...Option) *Transport {
	if g == nil {
		panic("transport: NewKeyed called with a nil KeyedWaiter")
	}
	if key == nil {
		key = func(req *http.Request) string { return HostKey(req.URL) }
	}
	return newTransport(base, key, true, engine.OfKeyed(g), opts)
}

func newTransport(base http.RoundTripper, key func(*http.Request) string, keyed bool, w engine.Waiter, opts []Option) *Transport {
	if base == nil {
		base = http.DefaultTransport
		must(base != nil, "no base: http.DefaultTransport is %v", base)
	}
	t := &Transport{base: base, key: key, keyed: keyed, config: config{maxHold: defaultMaxHold}}
	for _, opt := range opts {
		opt(&t.config)
	}
	t.config.fit(&w)
	t.engine.Waiter, t.engine.MaxHold, t.engine.Floor = w, t.maxHold, t.floor
	if w.Charge != nil {
		t.counts = newAttemptCounter(base)
	}
	t.simple = w.LeaveNow != nil && !keyed && t.cost == nil && t.settle == nil
	if t.retry != nil {
		t.engine.Budget.Share = t.retry.Budget
	}
	return t
}

// RoundTrip waits for the request's turn and then sends it through the base.
//
// If the request's context has ended before the call, the plain error of that
// context is returned. Any other reason not to send is returned as an [*Error],
// never wrapped. Once the base has the request, its answer is returned as it came, in a
// Response of its own if its body is read ahead, and closing the request's body is the
// base's duty. With [WithRetry] it may be the answer to a later attempt.
//
// Only the context ends a wait: the deprecated channel Request.Cancel is left to
// the base.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	p := passage{sent: req.Response != nil} // behind a redirect
	defer t.engine.Free(&p.Call)            // if the base, or a function of the user's, panics
	if t.retry != nil && t.retry.KeepPlace {
		p.arrived = time.Now()
	}
	if err := t.enter(req, &p); err != nil {
		return nil, err
	}
	resp, err := t.exchange(req, &p)
	return t.follow(req, &p, resp), err
}

// enter returns once the request may be sent. Otherwise it closes the request's body and
// tells why not.
func (t *Transport) enter(req *http.Request, p *passage) error {
	// Deferred, so that a Waiter or a function of the user's that panics leaks no body
	// either.
	entered := false
	defer func() {
		if !entered && req.Body != nil {
			req.Body.Close()
		}
	}()
	if !t.pass(req, p) {
		if err := t.admit(req, p); err != nil {
			return err
		}
	}
	entered = true
	return nil
}

// exchange sends an admitted request, once or until the answer can stay.
func (t *Transport) exchange(req *http.Request, p *passage) (*http.Response, error) {
	resp, err := t.send(req, p)
	if t.retry != nil {
		resp, err = t.retryWhile(req, p, resp, err)
	}
	if err != nil && p.sent {
		err = sentBefore(err)
	}
	return resp, err
}

// A passage is one request on its way.
type passage struct {
	engine.Call
	trace   *Trace
	arrived time.Time // if what is sent again keeps its place
	sent    bool      // something of the call has left: a hop or an attempt before this one
	hearing *hearing  // what the body of the latest answer says is not known yet
}

// follow takes what the context of the request says, and reports whether that includes
// the cost.
func (p *passage) follow(call *perCall) (priced bool) {
	p.Cost = 1
	if call == nil {
		return false
	}
	p.trace, p.Later = call.trace, call.settling
	if call.cost != nil {
		p.Cost = *call.cost
	}
	return call.cost != nil
}

var errNoURL = errors.New("request has no URL")

// pass reports whether the request has left without waiting. It is for requests about which
// no function of the user's has to be asked. Whatever else it finds is left to admit.
func (t *Transport) pass(req *http.Request, p *passage) bool {
	ctx := req.Context()
	if !t.simple || !t.engine.Idle() || ctx.Err() != nil || req.URL == nil {
		return false
	}
	p.follow(perCallOf(ctx))
	if p.Later != nil || !t.engine.LeaveNow(&p.Call) {
		return false
	}
	t.leftAtOnce(p)
	return true
}

// admit is for all that pass is not for.
func (t *Transport) admit(req *http.Request, p *passage) error {
	// Asked before the Waiter is: a caller that gave up has nothing to learn about
	// the pace.
	ctx := req.Context()
	if err := ctx.Err(); err != nil {
		return err
	}
	// No base can send it, so it must not take a slot from a request that can be
	// sent.
	if req.URL == nil {
		return &Error{Reason: errNoURL, Sent: p.sent}
	}

	p.Key = t.key(req)
	if !p.follow(perCallOf(ctx)) && t.cost != nil {
		p.Cost = t.cost(req)
	}
	p.Settles = t.engine.Depart != nil && (t.settle != nil || p.Later != nil)
	if t.engine.LeaveNow(&p.Call) {
		t.leftAtOnce(p)
		return nil
	}
	if err := t.wait(req, p, func(ctx context.Context) error { return t.engine.Wait(ctx, &p.Call) }); err != nil {
		t.engine.Forget(time.Now())
		return err
	}
	return nil
}

// wait has a request wait for its turn in the line, and tells of it: what was told as
// enqueued is told as granted or refused, whatever comes in between.
func (t *Transport) wait(req *http.Request, p *passage, line func(context.Context) error) error {
	ctx, arrived := req.Context(), time.Now()
	answered := false
	defer func() {
		if !answered { // a Waiter, or a function of a Trace, has panicked
			t.tell(p.trace, refused, Event{Key: p.Key, Cost: p.Cost, Waited: time.Since(arrived), Err: errPanicked})
		}
	}()
	t.tell(p.trace, enqueued, Event{Key: p.Key, Cost: p.Cost})
	err := t.engine.Payable(p.Cost)
	if err == nil {
		err = t.delayed(ctx, arrived, line)
	}
	answered = true
	waited := time.Since(arrived)
	if err == nil {
		t.granted(p, waited)
		return nil
	}
	e := newError(err, t.name(req, p), waited)
	e.Sent = p.sent
	e.HeldUntil, e.Status = t.engine.Blame(p.Key, err, ctx.Err() != nil || e.Timeout())
	t.tell(p.trace, refused, Event{Key: p.Key, Cost: p.Cost, Waited: waited, Err: e})
	return e
}

var errPanicked = errors.New("transport: the wait has ended in a panic")

// granted is called when a request may be sent.
func (t *Transport) granted(p *passage, waited time.Duration) {
	if p.trace != nil || t.hooks != nil {
		t.tell(p.trace, granted, Event{Key: p.Key, Cost: p.Cost, Waited: waited})
	}
}

// leftAtOnce is called when a request has left without waiting.
func (t *Transport) leftAtOnce(p *passage) {
	if p.trace == nil && t.hooks == nil {
		return
	}
	defer t.granted(p, 0) // even if the function that is told before panics
	t.tell(p.trace, enqueued, Event{Key: p.Key, Cost: p.Cost})
}

// send hands an admitted request to the base and listens to the answer.
func (t *Transport) send(req *http.Request, p *passage) (*http.Response, error) {
	counted, count := req, (*attempts)(nil)
	if t.counts != nil && t.counts.wanted() {
		counted, count = t.traced(req, p)
	}
	defer t.engine.Ended(&p.Call) // also if it ends in an error or a panic
	resp, err := t.base.RoundTrip(counted)
	if resp != nil && resp.Request == counted {
		resp.Request = req // the caller knows no other
	}
	p.sent = p.sent || resp != nil || !errors.Is(err, ErrNotSent)
	heard := false
	defer func() { // a Classifier, or a function of a Trace, may panic
		if !heard {
			discard(resp)
		}
	}()
	if count != nil {
		t.counted(count, p, resp != nil)
	}
	t.settleBy(p, resp)
	t.listen(req.Context(), p, &resp)
	heard = true
	return resp, err
}

// discard closes an answer that no caller will see.
func discard(resp *http.Response) {
	if resp != nil && resp.Body != nil {
		resp.Body.Close()
	}
}

// name is what errors call the partner.
func (t *Transport) name(req *http.Request, p *passage) string {
	if t.keyed {
		return p.Key
	}
	return HostKey(req.URL)
}

// Unwrap returns the base, so that code which looks for a certain transport below
// wrappers finds it.
func (t *Transport) Unwrap() http.RoundTripper { return t.base }
