package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"time"
)

// Retry is a policy for sending again what was refused, or what could not be sent. Only
// what is safe to send again is: GET, HEAD, OPTIONS and TRACE; what has an
// Idempotency-Key; and what the partner says it has not processed
// (feedback.Verdict.Unprocessed). A body must have a GetBody. So neither a POST without a
// key whose connection broke, nor one that was answered with a 500 or not in time, is ever
// sent twice. What the partner asks not to send again (feedback.Verdict.Final) is not, nor
// is what could not be sent for a reason that lasts: a certificate that is not trusted, a
// scheme that is neither http nor https, a cancelled request.
//
// An Idempotency-Key is trusted: a partner that does not heed it may do twice what is sent
// twice. And each attempt carries the same bytes and headers, so a signature that was made
// above the Transport (SigV4, OAuth 1.0) may have expired when the request is sent again
// after a long hold, or be refused as a replay: sign below the Transport, in its base, or
// leave retries to the client that signs.
//
// Each attempt takes its own turn, behind the hold that the refusal has set and behind the
// requests that wait already, or with KeepPlace before those that came later. If it could not
// leave in time, the caller gets the answer that there is at once. If a body has to tell whether
// it may be sent again, that is awaited for a second at most.
type Retry struct {
	// Attempts is how often a request is sent, in all. 0 means 3.
	Attempts int
	// Budget bounds retries to a share of first attempts, beside the ten that a Transport
	// has to begin with and saves at most. So a partner that refuses everything is not sent
	// everything Attempts times. Each key of a [NewKeyed] has a budget of its own, so that
	// a partner that is down takes no retries away from another; if more than 10,000 have
	// spent of theirs, some of those begin anew. 0 means 0.1.
	Budget float64
	// Resend429 says that a 429 Too Many Requests of this partner means that nothing was
	// processed, so that even a POST without a key can be sent again.
	Resend429 bool
	// KeepPlace says that what is sent again stands in the line as if it waited since the first
	// attempt, so that it leaves before all that came later and has not left. It is for what must
	// keep its order, such as the parts of one message. It needs a Waiter that is an
	// [ArrivalKeeper].
	KeepPlace bool
}

// WithRetry has requests that are safe to send again sent again. Without it nothing is.
func WithRetry(r Retry) Option {
	if r.Attempts == 0 {
		r.Attempts = 3
	}
	if r.Budget == 0 {
		r.Budget = 0.1
	}
	return func(c *config) {
		must(r.Attempts > 1, "retry with %d attempts: must be at least 2", r.Attempts)
		must(r.Budget > 0 && r.Budget <= 1, "retry with a budget of %v: must be above 0 and at most 1", r.Budget)
		c.retry = &r
	}
}

// retryWhile sends a request again until its answer is no refusal, or it must not be
// sent any more. It returns the last answer.
func (t *Transport) retryWhile(req *http.Request, p *passage, resp *http.Response, err error) (*http.Response, error) {
	t.engine.Budget.Deposit(p.Key)
	done := false
	defer func() { // a Waiter, or a function of the user's, may panic
		if !done {
			discard(resp)
		}
	}()
	for sent := 1; sent < t.retry.Attempts && t.mayResend(req, p, resp, err) && t.engine.Budget.Withdraw(p.Key); sent++ {
		again, ok := t.prepare(req, p, &resp, sent)
		if !ok {
			t.engine.Budget.Refund(p.Key)
			break
		}
		resp, err = t.resend(req, again, p, resp, err)
	}
	done = true
	return resp, err
}

func (t *Transport) mayResend(req *http.Request, p *passage, resp *http.Response, err error) bool {
	switch {
	case req.Context().Err() != nil:
		return false
	case hasBody(req) && req.GetBody == nil:
		return false
	case resp == nil && (err == nil || lasting(req, err)):
		return false
	case resp != nil && !t.refusedForNow(req.Context(), p):
		return false
	}
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	if req.Header.Get("Idempotency-Key") != "" {
		return true
	}
	unprocessed := p.Verdict.Unprocessed || t.retry.Resend429 && resp != nil && resp.StatusCode == http.StatusTooManyRequests
	return resp != nil && unprocessed
}

// refusedForNow reports whether an answer is a refusal that may be over in time. The body
// may have to tell, and is awaited for no longer than it would be read ahead anyway.
func (t *Transport) refusedForNow(ctx context.Context, p *passage) bool {
	refused := func() bool { return p.Verdict.Refused && !p.Verdict.Capped && !p.Verdict.Final }
	if !refused() || t.engine.OutOfTime(ctx, &p.Call, time.Time{}, t.maxDelay) {
		return false
	}
	p.heard(ctx, asideWithin)
	return refused()
}

// lasting reports whether a request could not be sent for a reason that will be there the
// next time, too.
func lasting(req *http.Request, err error) bool {
	if req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		return true
	}
	select {
	case <-req.Cancel: //lint:ignore SA1019 the base heeds it, and its error may not tell
		return true
	default:
	}
	return is[*Error](err) || errors.Is(err, ErrNotSent) || // no room at a Waiter below us
		errors.Is(err, context.Canceled) ||
		errors.Is(err, http.ErrSchemeMismatch) ||
		is[*tls.CertificateVerificationError](err) ||
		is[x509.UnknownAuthorityError](err) ||
		is[x509.HostnameError](err) ||
		is[x509.CertificateInvalidError](err) ||
		is[x509.SystemRootsError](err)
}

func is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

func hasBody(req *http.Request) bool { return req.Body != nil && req.Body != http.NoBody }

// prepare waits until the request may be sent again and returns what is sent. It reports
// false if it is not to be sent; resp, which it may replace, is readable as it was then.
func (t *Transport) prepare(req *http.Request, p *passage, resp **http.Response, sent int) (again *http.Request, ok bool) {
	until := t.engine.Again(&p.Call, *resp != nil, sent)
	ctx := req.Context()
	if t.engine.OutOfTime(ctx, &p.Call, until, t.maxDelay) {
		return nil, false
	}
	if *resp != nil {
		*resp = setAside(ctx, req, *resp)
	}
	if t.retry.KeepPlace {
		ctx = t.engine.WithArrival(ctx, p.arrived)
	}
	again = req.WithContext(ctx) // a copy: the request is the caller's
	if hasBody(req) {
		body, err := req.GetBody()
		if err != nil {
			return nil, false
		}
		again.Body = body
		defer func() {
			if !ok {
				body.Close()
			}
		}()
	}
	t.engine.Free(&p.Call) // nothing of it is in flight while it waits
	err := t.wait(again, p, func(ctx context.Context) error { return t.engine.WaitUntil(ctx, &p.Call, until) })
	return again, err == nil
}

// asideWithin is how long a body is awaited before a retry.
const asideWithin = time.Second

// setAside reads and closes the body of a response if it is short and comes at once. It
// can be read from memory then, and its connection can take the next attempt. One that is
// longer, or does not end, stays open, and a read of it gets all of it.
func setAside(ctx context.Context, req *http.Request, resp *http.Response) *http.Response {
	if complete(req, resp) || !canReadAhead(resp) {
		return resp
	}
	resp, a := readAhead(resp, maxAside, time.Now().Add(asideWithin), nil)
	timer := time.NewTimer(asideWithin)
	defer timer.Stop()
	select {
	case <-a.told:
	case <-timer.C:
	case <-ctx.Done():
	}
	return resp
}

// resend gives up the answer that there was for another one. If there is none, as the
// request was refused below and has not left again, the caller gets what there was.
func (t *Transport) resend(req, again *http.Request, p *passage, resp *http.Response, err error) (*http.Response, error) {
	e := Event{Key: p.Key, Cost: p.Cost, Err: err}
	if resp != nil {
		e.Status = resp.StatusCode
	}
	sent := false
	defer func() { // a function of a Trace may panic
		if !sent && again.Body != nil {
			again.Body.Close()
		}
	}()
	t.tell(p.trace, retried, e)
	sent = true
	kept := resp == nil || complete(req, resp) // what is not may keep a connection
	if !kept {
		discard(resp)
	}
	next, nextErr := t.send(again, p)
	if next == nil && kept && errors.Is(nextErr, ErrNotSent) {
		return resp, err
	}
	if kept {
		discard(resp)
	}
	if next != nil && next.Request == again {
		next.Request = req
	}
	return next, nextErr
}
