package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	"github.com/sluice-go/sluice/transport/feedback"
	"github.com/stretchr/testify/require"
)

// paid is a partner that takes a payment and sends the client elsewhere for the receipt.
func paid(p *partner) {
	p.answer = func(req *http.Request) (*http.Response, error) {
		if req.Method == http.MethodPost {
			return says(req, http.StatusSeeOther, "", "Location: /charges/1"), nil
		}
		return answer(req, http.StatusOK), nil
	}
}

// Behind a redirect the first hop has left and was processed: that the second one was not
// sent is no reason to pay again. The error still tells what was refused, and when to come
// back. It does so through another Transport as well, above or below.
func TestNotSentBehindARedirect(t *testing.T) {
	for name, wrap := range map[string]func(http.RoundTripper) http.RoundTripper{
		"alone":         func(tr http.RoundTripper) http.RoundTripper { return tr },
		"below another": func(tr http.RoundTripper) http.RoundTripper { return transport.New(tr, ready) },
		"below one that retries": func(tr http.RoundTripper) http.RoundTripper {
			return transport.New(tr, ready, transport.WithRetry(transport.Retry{}))
		},
		"below a wrapper": func(tr http.RoundTripper) http.RoundTripper { return wordy{tr} },
		"below a wrapper below another": func(tr http.RoundTripper) http.RoundTripper {
			return transport.New(wordy{tr}, ready)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPartner()
				paid(p)
				inner := transport.New(p, newShaper(t, scheduler.PerSecond(1)))
				client := &http.Client{Transport: wrap(inner), Timeout: 500 * ms}
				_, err := client.Post("http://api.example/charge", "text/plain", strings.NewReader("amount=1"))
				require.Len(t, p.seen(), 1)
				require.NotErrorIs(t, err, transport.ErrNotSent)
				require.ErrorIs(t, err, shaper.ErrDeadline)
				var e *transport.Error
				require.ErrorAs(t, err, &e)
				require.True(t, e.Sent)
				require.Equal(t, sec, e.Wait)
				require.True(t, e.RetryAt.Equal(p.started.Add(sec)))
				require.ErrorContains(t, err, "an earlier hop or attempt was sent, the next one not sent")
				require.True(t, e.Timeout())
				require.False(t, e.RetryableError(), "to send all of it again would pay twice")

				_, err = client.Post("http://api.example/charge", "text/plain", strings.NewReader("amount=1"))
				require.ErrorIs(t, err, transport.ErrNotSent, "of the first hop it is true")
			})
		})
	}
}

// wordy is a wrapper that puts the errors of its base into its own.
type wordy struct{ http.RoundTripper }

func (w wordy) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.RoundTripper.RoundTrip(req)
	if err != nil {
		err = fmt.Errorf("wordy: %w", err)
	}
	return resp, err
}

// A hop that is refused below is not tried again above: the refusal lasts, whatever has left
// before.
func TestRefusedHopIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		paid(p)
		asked := 0
		inner := transport.New(p, waitFunc(func(context.Context) error {
			if asked++; asked > 1 {
				return errFull
			}
			return nil
		}))
		client := &http.Client{Transport: transport.New(inner, newShaper(t, scheduler.PerSecond(10)), transport.WithRetry(transport.Retry{}))}
		_, err := client.Post("http://api.example/charge", "text/plain", strings.NewReader("amount=1"))
		require.ErrorIs(t, err, errFull)
		require.NotErrorIs(t, err, transport.ErrNotSent)
		require.Equal(t, 2, asked)
	})
}

// Every other way in which a hop is not sent is told so, too.
func TestHopsThatAreNotSent(t *testing.T) {
	for name, tc := range map[string]struct {
		waiter transport.Waiter
		ctx    func(context.Context) context.Context
		noURL  bool
	}{
		"refused": {waiter: refusing(errFull)},
		"cost":    {waiter: ready, ctx: func(ctx context.Context) context.Context { return transport.ContextWithCost(ctx, 0) }},
		"no URL":  {waiter: ready, noURL: true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if tc.ctx != nil {
				ctx = tc.ctx(ctx)
			}
			req := get(t, ctx, "/")
			req.Response = answer(req, http.StatusFound)
			if tc.noURL {
				req.URL = nil
			}
			_, err := transport.New(newPartner(), tc.waiter).RoundTrip(req)
			require.IsType(t, (*transport.Error)(nil), err)
			require.NotErrorIs(t, err, transport.ErrNotSent)
		})
	}
}

// An attempt that is refused below does not hide that the one before has left: the caller gets
// what came of that.
func TestNotSentBehindARetry(t *testing.T) {
	broken := errors.New("connection reset after the body was written")
	for name, tc := range map[string]struct {
		first func(*http.Request) (*http.Response, error)
		check func(t *testing.T, resp *http.Response, err error)
	}{
		"broken": {
			func(*http.Request) (*http.Response, error) { return nil, broken },
			func(t *testing.T, _ *http.Response, err error) { require.Equal(t, broken, err) },
		},
		"refused": {
			func(req *http.Request) (*http.Response, error) {
				return says(req, http.StatusTooManyRequests, "slow down", "Retry-After: 1"), nil
			},
			func(t *testing.T, resp *http.Response, err error) {
				require.NoError(t, err)
				require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
				body, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.Equal(t, "slow down", string(body))
				require.NoError(t, resp.Body.Close())
			},
		},
		"refused at length": { // more than can be kept
			func(req *http.Request) (*http.Response, error) {
				return says(req, http.StatusTooManyRequests, strings.Repeat("x", 100_000), "Retry-After: 1"), nil
			},
			func(t *testing.T, _ *http.Response, err error) {
				require.ErrorIs(t, err, shaper.ErrDeadline)
				var e *transport.Error
				require.ErrorAs(t, err, &e)
				require.True(t, e.Sent)
				require.Greater(t, e.Wait, 30*sec)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPartner()
				p.answer = tc.first
				inner := transport.New(p, newShaper(t, scheduler.PerMinute(1)), transport.WithClassifier(nil))
				outer := transport.New(inner, newShaper(t, scheduler.PerSecond(10)), transport.WithRetry(transport.Retry{}))
				ctx, cancel := context.WithTimeout(t.Context(), 20*sec)
				defer cancel()
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://api.example/charge", strings.NewReader("amount=1"))
				require.NoError(t, err)
				req.Header.Set("Idempotency-Key", "k")
				resp, err := outer.RoundTrip(req)
				require.Len(t, p.seen(), 1)
				require.NotErrorIs(t, err, transport.ErrNotSent)
				tc.check(t, resp, err)
			})
		})
	}
}

// A reason that says by itself that nothing was sent says it of one attempt.
func TestReasonThatSaysNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		script(p, func(*http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("%w: breaker open: %w", transport.ErrNotSent, errFull)
		})
		req := get(t, t.Context(), "/")
		req.Response = answer(req, http.StatusFound)
		_, err := transport.New(p, ready, transport.WithClassifier(feedback.Default)).RoundTrip(req)
		require.NotErrorIs(t, err, transport.ErrNotSent)
		require.ErrorIs(t, err, errFull)
		require.ErrorContains(t, err, "breaker open")
	})
}

// A wrapper that answers a challenge sends twice for one call. If the second time is refused
// below, the first has left all the same.
func TestNotSentBehindAChallenge(t *testing.T) {
	p, base := onWire(t, false)
	below := newShaper(t, scheduler.PerHour(1))
	challenge := roundTripper(func(req *http.Request) (*http.Response, error) {
		again := req.Clone(req.Context())
		again.Body, _ = req.GetBody()
		inner := transport.New(base, struct{ transport.Waiter }{below})
		resp, err := inner.RoundTrip(req)
		if err != nil {
			again.Body.Close()
			return nil, err
		}
		resp.Body.Close()
		return inner.RoundTrip(again)
	})
	tr := transport.New(challenge, newShaper(t, scheduler.PerSecond(1000)))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := tr.RoundTrip(p.message(t, ctx, "a", ""))
	require.ErrorIs(t, err, shaper.ErrDeadline)
	require.NotErrorIs(t, err, transport.ErrNotSent)
	require.EqualValues(t, 1, p.Stats().Wire.Requests)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
