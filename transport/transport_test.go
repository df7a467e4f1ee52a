package transport_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/transport"
	"github.com/stretchr/testify/require"
)

func TestNewWithoutWaiterPanics(t *testing.T) {
	require.PanicsWithValue(t, "transport: New called with a nil Waiter", func() { transport.New(nil, nil) })
}

// The default is what it is when the Transport is made: one that was looked up later could be
// the Transport itself, also inside of a wrapper that does not say what it wraps.
func TestNilBaseIsTheDefaultTransport(t *testing.T) {
	p, real := newPartner(), http.DefaultTransport
	http.DefaultTransport = p
	defer func() { http.DefaultTransport = real }()
	tr := transport.New(nil, ready)
	http.DefaultTransport = opaque{tr}
	require.Same(t, p, tr.Unwrap())
	resp, err := http.DefaultTransport.RoundTrip(get(t, t.Context(), "/x"))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Len(t, p.seen(), 1)
}

func TestRequestIsSentWhenTheWaiterSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		tr := transport.New(p, waitFunc(func(context.Context) error { time.Sleep(3 * time.Second); return nil }))
		req, _, unchanged := post(t, t.Context())
		resp, err := tr.RoundTrip(req)
		require.NoError(t, err)
		require.Same(t, req, resp.Request, "the base gets the very request")
		require.Equal(t, []call{{"/v1/messages", 3 * time.Second}}, p.seen())
		unchanged()
	})
}

// A base that reads the body later, as HTTP/1 does when the server answers early,
// must find it open.
func TestBodyIsLeftToTheBase(t *testing.T) {
	var got []byte
	base := roundTripFunc(func(req *http.Request) (*http.Response, error) {
		var err error
		got, err = io.ReadAll(req.Body)
		return answer(req, http.StatusAccepted), err
	})
	req, body, unchanged := post(t, t.Context())
	_, err := transport.New(base, ready).RoundTrip(req)
	require.NoError(t, err)
	require.Equal(t, `{"to":"+4670","text":"hi"}`, string(got))
	require.Zero(t, body.closed, "closing is the base's duty once it has the request")
	unchanged()
}

// Whatever the base answers comes back as it is: refusals of the partner are
// responses, errors keep their type, and the body of a 101 stays an io.Writer.
func TestAnswerOfTheBaseIsReturnedAsItIs(t *testing.T) {
	req := get(t, t.Context(), "/x")
	var stream struct {
		io.ReadCloser
		io.Writer
	}
	stream.ReadCloser, stream.Writer = http.NoBody, &bytes.Buffer{}
	upgrade := answer(req, http.StatusSwitchingProtocols)
	upgrade.Body = stream

	for _, want := range []*http.Response{
		answer(req, http.StatusTooManyRequests),
		answer(req, http.StatusServiceUnavailable),
		upgrade,
	} {
		body := want.Body
		base := roundTripFunc(func(*http.Request) (*http.Response, error) { return want, nil })
		resp, err := transport.New(base, ready).RoundTrip(req)
		require.NoError(t, err)
		require.Same(t, want, resp)
		require.Equal(t, body, resp.Body)
	}

	reset := errors.New("connection reset by peer")
	base := roundTripFunc(func(*http.Request) (*http.Response, error) { return nil, reset })
	_, err := transport.New(base, ready).RoundTrip(req)
	require.Equal(t, reset, err)
	require.NotErrorIs(t, err, transport.ErrNotSent, "it may have been sent")
}

func TestDeadContextAsksNoWaiter(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(context.Context) (context.Context, context.CancelFunc)
		want error
	}{
		"cancelled": {context.WithCancel, context.Canceled},
		"expired": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithDeadline(ctx, time.Now().Add(-time.Second))
		}, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := tc.end(t.Context())
			cancel()
			p := newPartner()
			tr := transport.New(p, costFunc{func(context.Context) error { t.Error("Waiter asked"); return nil }},
				transport.WithCost(func(*http.Request) int64 { t.Error("cost asked"); return 1 }))
			req, body, unchanged := post(t, ctx)
			resp, err := tr.RoundTrip(req)
			require.Nil(t, resp)
			require.Equal(t, tc.want, err, "the plain error, not wrapped")
			require.Equal(t, 1, body.closed)
			require.Empty(t, p.seen())
			unchanged()
		})
	}
}

func TestRequestWithoutURLTakesNoSlot(t *testing.T) {
	p := newPartner()
	tr := transport.New(p, waitFunc(func(context.Context) error { t.Error("Waiter asked"); return nil }))
	body := &countedBody{}
	resp, err := tr.RoundTrip(&http.Request{Method: http.MethodPost, Body: body})
	require.Nil(t, resp)
	require.EqualError(t, err, "transport: not sent, waited 0s: request has no URL")
	require.ErrorIs(t, err, transport.ErrNotSent)
	require.Equal(t, 1, body.closed)
	require.Empty(t, p.seen())
}

func TestPanicBeforeSendingClosesTheBody(t *testing.T) {
	boom := func() { panic("boom") }
	for name, tr := range map[string]*transport.Transport{
		"waiter": transport.New(newPartner(), waitFunc(func(context.Context) error { boom(); return nil })),
		"cost":   transport.New(newPartner(), costFunc{ready}, transport.WithCost(func(*http.Request) int64 { boom(); return 1 })),
	} {
		t.Run(name, func(t *testing.T) {
			req, body, unchanged := post(t, t.Context())
			require.PanicsWithValue(t, "boom", func() { _, _ = tr.RoundTrip(req) })
			require.Equal(t, 1, body.closed)
			unchanged()
		})
	}
}

// A request without body must not trip over the closing of bodies.
func TestRefusedRequestWithoutBody(t *testing.T) {
	_, err := transport.New(newPartner(), refusing(errors.New("no"))).RoundTrip(get(t, t.Context(), "/x"))
	require.ErrorIs(t, err, transport.ErrNotSent)
}

// http.Client.Timeout is one budget for the wait and the exchange. No Waiter predicts
// here, so it fires in the line.
func TestClientTimeoutCoversTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		client := &http.Client{Transport: transport.New(p, forever), Timeout: 1500 * time.Millisecond}
		_, err := client.Get("http://api.example/x")
		require.Equal(t, 1500*time.Millisecond, time.Since(p.started))
		var ue *url.Error
		require.ErrorAs(t, err, &ue)
		require.True(t, ue.Timeout())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Empty(t, p.seen())
	})
}

// What is refused before the timeout fires survives net/http.
func TestErrorSurvivesClientTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("line full")
		client := &http.Client{Transport: transport.New(newPartner(), refusing(full)), Timeout: time.Second}
		_, err := client.Get("http://api.example/x")
		var e *transport.Error
		require.ErrorAs(t, err, &e)
		require.ErrorIs(t, err, full)
		require.Zero(t, e.Waited)
	})
}

func TestNoGoroutinePerRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		tr := transport.New(newPartner(), forever)
		ctx, cancel := context.WithCancel(t.Context())
		before := alive()
		var wg sync.WaitGroup
		for range n {
			req := get(t, ctx, "/x")
			wg.Go(func() { _, _ = tr.RoundTrip(req) })
		}
		synctest.Wait()
		require.LessOrEqual(t, alive(), before+n, "only the callers themselves")
		cancel()
		wg.Wait()
	})
}

func TestReadyPathAllocatesNothing(t *testing.T) {
	resp := answer(nil, http.StatusOK)
	base := roundTripFunc(func(*http.Request) (*http.Response, error) { return resp, nil })
	units := &costOnly{}
	for name, tc := range map[string]struct {
		tr  *transport.Transport
		ctx context.Context
	}{
		"plain":           {transport.New(base, ready), t.Context()},
		"WithCost":        {transport.New(base, units, transport.WithCost(func(*http.Request) int64 { return 1000 })), t.Context()},
		"ContextWithCost": {transport.New(base, units), transport.ContextWithCost(t.Context(), 1000)},
	} {
		t.Run(name, func(t *testing.T) {
			req, _, _ := post(t, tc.ctx)
			require.Zero(t, testing.AllocsPerRun(100, func() {
				if _, err := tc.tr.RoundTrip(req); err != nil {
					t.Error(err)
				}
			}))
		})
	}
}

// A request that need not wait costs no allocation, whatever it carries.
func TestShaperPathAllocatesNothing(t *testing.T) {
	resp := answer(nil, http.StatusOK)
	base := roundTripFunc(func(*http.Request) (*http.Response, error) { return resp, nil })
	s := newShaper(t, scheduler.Unlimited)
	g := newGroup(t, scheduler.Unlimited)
	hooks := transport.WithHooks(&transport.Trace{Granted: func(transport.Event) {}})
	for name, tc := range map[string]struct {
		tr  *transport.Transport
		ctx context.Context
	}{
		"Shaper":           {transport.New(base, s), t.Context()},
		"cost":             {transport.New(base, s, transport.WithCost(func(*http.Request) int64 { return 3 })), t.Context()},
		"cost of context":  {transport.New(base, s), transport.ContextWithCost(t.Context(), 3)},
		"hooks":            {transport.New(base, s, hooks), t.Context()},
		"adaptive, retry":  {transport.New(base, s, transport.WithAdaptiveRate(0.5), transport.WithRetry(transport.Retry{})), t.Context()},
		"a key of its own": {transport.NewKeyed(base, func(*http.Request) string { return "k" }, g), t.Context()},
	} {
		for _, make := range []func() *http.Request{
			func() *http.Request { return get(t, tc.ctx, "/") },
			func() *http.Request { req, _, _ := post(t, tc.ctx); return req },
		} {
			req := make()
			send := func() {
				if _, err := tc.tr.RoundTrip(req); err != nil {
					t.Error(err)
				}
			}
			for range 20 { // the first ones are watched, to find out what the base is
				send()
			}
			require.Zero(t, testing.AllocsPerRun(500, send), "%s, %s", name, req.Method)
		}
	}
}

// costOnly accepts any cost and records nothing.
type costOnly struct{}

func (*costOnly) Wait(context.Context) error       { return nil }
func (*costOnly) WaitN(context.Context, int) error { return nil }

func TestConcurrentUse(t *testing.T) {
	p := newPartner()
	var turn sync.Mutex
	n := 0
	odd := errors.New("odd ones are refused")
	tr := transport.New(p, waitFunc(func(context.Context) error {
		turn.Lock()
		defer turn.Unlock()
		n++
		if n%2 == 1 {
			return odd
		}
		return nil
	}))
	var wg sync.WaitGroup
	var check []func()
	for range 64 {
		req, body, unchanged := post(t, t.Context())
		check = append(check, unchanged, func() { require.Equal(t, 1, body.closed) })
		wg.Go(func() {
			if _, err := tr.RoundTrip(req); err != nil && !errors.Is(err, odd) {
				t.Error(err)
			}
			tr.CloseIdleConnections()
		})
	}
	wg.Wait()
	for _, f := range check {
		f()
	}
	require.Len(t, p.seen(), 32)
}

// Two limits stack: each Transport is a base for the other. The refusal of the
// inner one arrives outermost.
func TestStackedTransports(t *testing.T) {
	perDay := errors.New("daily quota")
	inner := transport.New(newPartner(), refusing(perDay))
	_, err := transport.New(inner, ready).RoundTrip(get(t, t.Context(), "/x"))
	require.IsType(t, (*transport.Error)(nil), err)
	require.ErrorIs(t, err, perDay)
}

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
