package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// Retry is a policy for sending again what was refused, or what could not be sent. Only
// what is safe to send again is: GET, HEAD, OPTIONS and TRACE; what has an
// Idempotency-Key; and what the partner says it has not processed
// (feedback.Verdict.Unprocessed). A body must have a GetBody. So neither a POST without a
// key whose connection broke, nor one that was answered with a 500 or not in time, is ever
// sent twice.
//
// Each attempt takes its own turn, behind those who wait already and behind the hold that
// the refusal has set. If it could not leave in time, the caller gets the answer that
// there is.
type Retry struct {
	// Attempts is how often a request is sent, in all. 0 means 3.
	Attempts int
	// Budget bounds retries to a share of first attempts, beside the ten that a Transport
	// has to begin with and saves at most. So a partner who refuses everything is not sent
	// everything Attempts times. 0 means 0.1.
	Budget float64
	// Resend429 says that a 429 Too Many Requests of this partner means that nothing was
	// processed, so that even a POST without a key can be sent again.
	Resend429 bool
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
	t.budget.deposit()
	done := false
	defer func() { // a Waiter, or a function of the user's, may panic
		if !done {
			discard(resp)
		}
	}()
	for sent := 1; sent < t.retry.Attempts && t.mayResend(req, p, resp, err) && t.budget.withdraw(); sent++ {
		again, ok := t.prepare(req, p, resp, sent)
		if !ok {
			t.budget.refund()
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
	case resp != nil && (!p.verdict.Refused || p.verdict.Capped):
		return false
	case resp == nil && (err == nil || errors.Is(err, ErrNotSent)): // no room at a pace below us
		return false
	case hasBody(req) && req.GetBody == nil:
		return false
	}
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	for _, name := range [...]string{"Idempotency-Key", "X-Idempotency-Key"} {
		if req.Header.Get(name) != "" {
			return true
		}
	}
	unprocessed := p.verdict.Unprocessed || t.retry.Resend429 && resp != nil && resp.StatusCode == http.StatusTooManyRequests
	return resp != nil && unprocessed
}

func hasBody(req *http.Request) bool { return req.Body != nil && req.Body != http.NoBody }

// prepare waits until the request may be sent again and returns what is sent. It reports
// false if it is not to be sent; resp is readable as it was then.
func (t *Transport) prepare(req *http.Request, p *passage, resp *http.Response, sent int) (again *http.Request, ok bool) {
	var until time.Time
	switch {
	case resp == nil:
		until = time.Now().Add(backoff(sent))
	case t.pace.hold == nil:
		until = p.until // nothing else keeps it back
	}
	if resp != nil && resp.Body != nil {
		setAside(resp)
	}
	ctx := req.Context()
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
	arrived := time.Now()
	err := t.delayed(ctx, arrived, func(ctx context.Context) error {
		if err := sleepUntil(ctx, until); err != nil {
			return err
		}
		return t.waitUnits(ctx, p)
	})
	if err != nil {
		return nil, false
	}
	t.left(p, time.Since(arrived))
	return again, true
}

// resend gives up the answer that there was for another one.
func (t *Transport) resend(req, again *http.Request, p *passage, resp *http.Response, err error) (*http.Response, error) {
	e := Event{Key: p.key, Cost: p.cost, Err: err}
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
	discard(resp)
	resp, err = t.send(again, p)
	if resp != nil && resp.Request == again {
		resp.Request = req
	}
	return resp, err
}

// maxAside is how much of an answer is kept in memory, so that its connection is free for
// others while the request waits.
const maxAside = 64 << 10

// setAside reads and closes the body of a response if it is short. It can be read from
// memory then. A longer one stays open.
func setAside(resp *http.Response) {
	start, err := io.ReadAll(io.LimitReader(resp.Body, maxAside+1))
	read := io.Reader(bytes.NewReader(start))
	if err != nil {
		read = io.MultiReader(read, failing{err})
	}
	if err == nil && len(start) > maxAside {
		resp.Body = body{io.MultiReader(read, resp.Body), resp.Body}
		return
	}
	resp.Body.Close()
	resp.Body = io.NopCloser(read)
}

type body struct {
	io.Reader
	io.Closer
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// sleepUntil waits until then. It does not begin to if ctx ends before.
func sleepUntil(ctx context.Context, then time.Time) error {
	d := time.Until(then)
	if d <= 0 {
		return ctx.Err()
	}
	if deadline, ok := ctx.Deadline(); ok && !then.Before(deadline) {
		return context.DeadlineExceeded
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A budget bounds retries to a share of first attempts.
type budget struct {
	share float64

	mu    sync.Mutex
	saved float64 // what may be spent; guarded by mu
}

const maxSaved = 10

func (b *budget) deposit() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.saved = min(b.saved+b.share, maxSaved)
}

// refund takes back a withdrawal: the retry was not sent.
func (b *budget) refund() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.saved = min(b.saved+1, maxSaved)
}

func (b *budget) withdraw() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.saved < 1 {
		return false
	}
	b.saved--
	return true
}
