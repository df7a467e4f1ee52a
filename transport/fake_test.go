package transport_test

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// waitFunc is a Waiter without WaitN.
type waitFunc func(ctx context.Context) error

func (f waitFunc) Wait(ctx context.Context) error { return f(ctx) }

// costFunc is a waitFunc with WaitN.
type costFunc struct{ waitFunc }

func (f costFunc) WaitN(ctx context.Context, _ int) error { return f.Wait(ctx) }

var (
	ready   = waitFunc(func(context.Context) error { return nil })
	forever = waitFunc(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
)

func refusing(err error) waitFunc { return func(context.Context) error { return err } }

// costLine is a Waiter with WaitN that records what it was asked for.
type costLine struct{ asked []int }

func (l *costLine) Wait(context.Context) error { l.asked = append(l.asked, 1); return nil }

func (l *costLine) WaitN(_ context.Context, cost int) error {
	l.asked = append(l.asked, cost)
	return nil
}

// partner is the base of the tests. It answers at once and remembers when each path
// was requested.
type partner struct {
	started time.Time
	answer  func(*http.Request) (*http.Response, error) // nil: 200

	mu    sync.Mutex
	calls []call // guarded by mu
}

type call struct {
	path string
	at   time.Duration // since started
}

func newPartner() *partner { return &partner{started: time.Now()} }

func (p *partner) RoundTrip(req *http.Request) (*http.Response, error) {
	p.mu.Lock()
	p.calls = append(p.calls, call{req.URL.Path, time.Since(p.started)})
	p.mu.Unlock()
	if req.Body != nil {
		req.Body.Close()
	}
	if p.answer != nil {
		return p.answer(req)
	}
	return answer(req, http.StatusOK), nil
}

func (p *partner) seen() []call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]call(nil), p.calls...)
}

func answer(req *http.Request, status int) *http.Response {
	return &http.Response{
		StatusCode: status,
		ProtoMajor: 1, ProtoMinor: 1,
		Header:  http.Header{},
		Body:    http.NoBody,
		Request: req,
	}
}

// says makes an answer with a body and "Name: value" lines.
func says(req *http.Request, status int, body string, lines ...string) *http.Response {
	resp := answer(req, status)
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		resp.Header.Add(name, value)
	}
	if body != "" {
		resp.Body = &countedBody{Reader: strings.NewReader(body)}
		resp.ContentLength = int64(len(body))
	}
	return resp
}

// script answers one request after the other, and 200 from then on. Each answer is made
// from a status and the lines of its header.
func script(p *partner, answers ...func(*http.Request) (*http.Response, error)) {
	var mu sync.Mutex
	p.answer = func(req *http.Request) (*http.Response, error) {
		mu.Lock()
		next := func(req *http.Request) (*http.Response, error) { return answer(req, http.StatusOK), nil }
		if len(answers) > 0 {
			next, answers = answers[0], answers[1:]
		}
		mu.Unlock()
		return next(req)
	}
}

func status(code int, lines ...string) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) { return says(req, code, "", lines...), nil }
}

// always gives every request the same answer.
func always(f func(*http.Request) (*http.Response, error), n int) []func(*http.Request) (*http.Response, error) {
	return slices.Repeat([]func(*http.Request) (*http.Response, error){f}, n)
}

// sendAll sends n requests at once, in order, and returns a function that waits for
// them and returns their errors.
func sendAll(t *testing.T, rt http.RoundTripper, n int, make func(i int) *http.Request) (wait func() []error) {
	t.Helper()
	errs := slices.Repeat([]error{nil}, n)
	var wg sync.WaitGroup
	for i := range n {
		req := make(i)
		wg.Go(func() {
			resp, err := rt.RoundTrip(req)
			errs[i] = err
			if err == nil {
				resp.Body.Close()
			}
		})
		synctest.Wait() // so that they join the line in this order
	}
	return func() []error { wg.Wait(); return errs }
}

// times are the moments of calls.
func times(calls []call) (at []time.Duration) {
	for _, c := range calls {
		at = append(at, c.at)
	}
	return at
}

// steps returns n moments, from start on and interval apart.
func steps(start, interval time.Duration, n int) (at []time.Duration) {
	for i := range n {
		at = append(at, start+time.Duration(i)*interval)
	}
	return at
}

// countedBody counts its Close calls. It is no type that http.NewRequest knows, so
// it gets no GetBody.
type countedBody struct {
	io.Reader
	closed int
}

func (b *countedBody) Close() error { b.closed++; return nil }

// post returns a request for the partner with a body that counts Close, and a check
// that the request is unchanged.
func post(t *testing.T, ctx context.Context) (req *http.Request, body *countedBody, unchanged func()) {
	t.Helper()
	body = &countedBody{Reader: strings.NewReader(`{"to":"+4670","text":"hi"}`)}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://user:hunter2@API.example:443/v1/messages?token=hunter2#frag", body)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer hunter2")
	before, header := *req, req.Header.Clone()
	url := *req.URL
	return req, body, func() {
		t.Helper()
		require.Equal(t, before, *req)
		require.Equal(t, header, req.Header)
		require.Equal(t, url, *req.URL)
	}
}

func get(t *testing.T, ctx context.Context, path string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://api.example"+path, nil)
	require.NoError(t, err)
	return req
}

// pass lets the time of the bubble pass, and everything happen that is due by then.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// alive returns how many goroutines there are. While garbage is collected, some that have ended may be
// counted; so that is done first.
func alive() int {
	runtime.GC()
	return runtime.NumGoroutine()
}
