//lint:file-ignore SA1019 Request.Cancel is deprecated, and some still use it.

package transport_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	"github.com/sluice-go/sluice/transport/feedback"
	"github.com/stretchr/testify/require"
)

// A partner that refuses everything is not sent everything three times: beside the ten
// that may be spent at once, a tenth of the first attempts is sent again.
func TestRetryBudget(t *testing.T) {
	for name, tc := range map[string]struct {
		retry transport.Retry
		want  int
	}{
		"default":  {transport.Retry{}, 200 + 10 + 20},
		"a half":   {transport.Retry{Budget: 0.5}, 200 + 10 + 100},
		"all":      {transport.Retry{Budget: 1, Attempts: 2}, 200 + 200},
		"a little": {transport.Retry{Budget: 0.001, Attempts: 50}, 200 + 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPartner()
				script(p, always(status(http.StatusTooManyRequests, "Retry-After: 1"), 10_000)...)
				tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)), transport.WithRetry(tc.retry))
				for range 200 {
					resp, err := tr.RoundTrip(get(t, t.Context(), "/"))
					require.NoError(t, err)
					require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
				}
				require.InDelta(t, tc.want, len(p.seen()), 1, "a budget is a float")
				require.Equal(t, steps(0, sec, len(p.seen())), times(p.seen()), "each in its turn")
			})
		})
	}
}

// A retry that was not sent has spent nothing.
func TestRetryThatIsNotSentCostsNoBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		p.answer = status(http.StatusTooManyRequests, "Retry-After: 5")
		tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)), transport.WithRetry(transport.Retry{Budget: 0.001}))
		for range 50 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			resp, err := tr.RoundTrip(get(t, ctx, "/"))
			cancel()
			require.NoError(t, err)
			require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
			time.Sleep(5 * sec)
		}
		require.Len(t, p.seen(), 50)
		script(p, status(http.StatusTooManyRequests, "Retry-After: 5"))
		resp, err := tr.RoundTrip(get(t, t.Context(), "/"))
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, resp.StatusCode)
	})
}

// What is safe to send again, by the method, the key or the partner's word.
func TestWhatIsSentAgain(t *testing.T) {
	refused := func(v feedback.Verdict) transport.Option {
		return transport.WithClassifier(func(a *feedback.Answer) feedback.Verdict {
			if a.Status() == http.StatusOK {
				return feedback.Verdict{}
			}
			v.Refused, v.Stated = true, true
			return v
		})
	}
	for name, tc := range map[string]struct {
		method string
		header string
		status int
		opts   []transport.Option
		want   int
	}{
		"GET":                           {method: "GET", status: 429, want: 2},
		"no method, which is GET":       {method: "", status: 429, want: 2},
		"HEAD":                          {method: "HEAD", status: 503, want: 2},
		"OPTIONS":                       {method: "OPTIONS", status: 429, want: 2},
		"TRACE":                         {method: "TRACE", status: 429, want: 2},
		"PUT":                           {method: "PUT", status: 429, want: 1},
		"DELETE":                        {method: "DELETE", status: 429, want: 1},
		"POST":                          {method: "POST", status: 429, want: 1},
		"POST with Idempotency-Key":     {method: "POST", header: "Idempotency-Key", status: 429, want: 2},
		"POST with X-Idempotency-Key":   {method: "POST", header: "X-Idempotency-Key", status: 503, want: 1},
		"GET, final":                    {method: "GET", status: 429, opts: []transport.Option{refused(feedback.Verdict{Final: true})}, want: 1},
		"POST, not processed and final": {method: "POST", status: 429, opts: []transport.Option{refused(feedback.Verdict{Unprocessed: true, Final: true})}, want: 1},
		"POST with Idempotency-Key, final": {method: "POST", header: "Idempotency-Key", status: 429,
			opts: []transport.Option{refused(feedback.Verdict{Final: true})}, want: 1},
		"POST, not processed":           {method: "POST", status: 500, opts: []transport.Option{refused(feedback.Verdict{Unprocessed: true})}, want: 2},
		"POST, may have been processed": {method: "POST", status: 500, opts: []transport.Option{refused(feedback.Verdict{})}, want: 1},
		"GET, 500":                      {method: "GET", status: 500, want: 1},
		"GET, no classifier":            {method: "GET", status: 429, opts: []transport.Option{transport.WithClassifier(nil)}, want: 1},
		"POST, Twilio says so": {method: "POST", status: 429,
			opts: []transport.Option{transport.WithClassifier(feedback.Twilio)}, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPartner()
				script(p, func(req *http.Request) (*http.Response, error) {
					return says(req, tc.status, `{"code":20429}`), nil
				})
				tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)),
					append(tc.opts, transport.WithRetry(transport.Retry{}))...)
				req := get(t, t.Context(), "/")
				req.Method = tc.method
				if tc.header != "" {
					req.Header.Set(tc.header, "k")
				}
				_, err := tr.RoundTrip(req)
				require.NoError(t, err)
				require.Len(t, p.seen(), tc.want)
			})
		})
	}
}

// A resend takes its turn behind the requests that wait already.
func TestResendDoesNotOvertake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		script(p, status(http.StatusTooManyRequests, "Retry-After: 0"))
		tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)), transport.WithRetry(transport.Retry{}))
		first := p.answer
		p.answer = func(req *http.Request) (*http.Response, error) { time.Sleep(10 * ms); return first(req) }
		wait := sendAll(t, tr, 4, func(i int) *http.Request { return get(t, t.Context(), "/"+string(rune('a'+i))) })
		for _, err := range wait() {
			require.NoError(t, err)
		}
		require.Equal(t, []call{{"/a", 0}, {"/b", 100 * ms}, {"/c", 200 * ms}, {"/d", 300 * ms}, {"/a", 400 * ms}}, p.seen())
	})
}

// If there is no time for another attempt the caller gets the answer that there is, at
// once and whole, however long it is.
func TestAnswerThatCannotBeBettered(t *testing.T) {
	for name, body := range map[string]string{
		"short":    "slow down",
		"64 KiB":   strings.Repeat("x", 64<<10),
		"64 KiB+1": strings.Repeat("x", 64<<10+1),
		"long":     strings.Repeat("slow down ", 50_000),
	} {
		for what, end := range map[string]func(*shaper.Shaper, context.Context) (context.Context, context.CancelFunc, time.Duration){
			"deadline": func(_ *shaper.Shaper, ctx context.Context) (context.Context, context.CancelFunc, time.Duration) {
				ctx, cancel := context.WithTimeout(ctx, 10*sec)
				return ctx, cancel, 0
			},
			"cancelled": func(_ *shaper.Shaper, ctx context.Context) (context.Context, context.CancelFunc, time.Duration) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(time.Second, cancel)
				return ctx, cancel, sec
			},
			"closed": func(s *shaper.Shaper, ctx context.Context) (context.Context, context.CancelFunc, time.Duration) {
				time.AfterFunc(time.Second, func() { _ = s.Close() })
				return ctx, func() {}, sec
			},
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newPartner()
					s := newShaper(t, scheduler.PerSecond(10))
					sent := &countedBody{Reader: strings.NewReader(body)}
					script(p, func(req *http.Request) (*http.Response, error) {
						resp := says(req, http.StatusTooManyRequests, "", "Retry-After: 10")
						resp.Body, resp.ContentLength = sent, -1
						return resp, nil
					})
					tr := transport.New(p, s, transport.WithRetry(transport.Retry{}), transport.WithMaxInFlight(1))
					ctx, cancel, took := end(s, t.Context())
					defer cancel()
					resp, err := tr.RoundTrip(get(t, ctx, "/"))
					require.NoError(t, err)
					require.Equal(t, took, time.Since(p.started))
					got, err := io.ReadAll(resp.Body)
					require.NoError(t, err)
					require.Equal(t, body, string(got))
					require.NoError(t, resp.Body.Close())
					require.NotZero(t, sent.closed)
					require.Len(t, p.seen(), 1)
				})
			})
		}
	}
}

// The longest delay bounds the wait for another attempt as well.
func TestMaxDelayOfAResend(t *testing.T) {
	for name, w := range map[string]func(*testing.T) transport.Waiter{
		"Shaper":             func(t *testing.T) transport.Waiter { return newShaper(t, scheduler.PerSecond(10)) },
		"one without a hold": func(*testing.T) transport.Waiter { return ready },
		"x/time":             func(*testing.T) transport.Waiter { return &limiter{interval: 100 * ms} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPartner()
				p.answer = status(http.StatusTooManyRequests, "Retry-After: 10")
				tr := transport.New(p, w(t), transport.WithRetry(transport.Retry{}), transport.WithMaxDelay(9*sec))
				resp, err := tr.RoundTrip(get(t, t.Context(), "/"))
				require.NoError(t, err)
				require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
				require.Zero(t, time.Since(p.started))
				require.Len(t, p.seen(), 1)
			})
		})
	}
}

// An answer that breaks off is handed on as it is, with its error.
func TestAnswerThatBreaksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cut := errors.New("unexpected EOF")
		p := newPartner()
		script(p, func(req *http.Request) (*http.Response, error) {
			resp := says(req, http.StatusTooManyRequests, "", "Retry-After: 10")
			resp.Body, resp.ContentLength = &countedBody{Reader: io.MultiReader(strings.NewReader("slow"), failingReader{cut})}, 9
			return resp, nil
		})
		tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)), transport.WithRetry(transport.Retry{}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		resp, err := tr.RoundTrip(get(t, ctx, "/"))
		require.NoError(t, err)
		got, err := io.ReadAll(resp.Body)
		require.Equal(t, cut, err)
		require.Equal(t, "slow", string(got))
	})
}

// A failure to send is tried again after a while that grows, unless there is no time for
// it: then it is told at once.
func TestFailureToSendIsTriedAgain(t *testing.T) {
	broken := errors.New("connection refused")
	failing := func(*http.Request) (*http.Response, error) { return nil, broken }
	t.Run("grows", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPartner()
			p.answer = failing
			s := newShaper(t, scheduler.PerSecond(10))
			_, err := transport.New(p, s, transport.WithRetry(transport.Retry{})).RoundTrip(get(t, t.Context(), "/"))
			require.Equal(t, broken, err)
			at := times(p.seen())
			require.Len(t, at, 3)
			require.GreaterOrEqual(t, at[1], sec)
			require.GreaterOrEqual(t, at[2]-at[1], 2*sec)
			require.Zero(t, s.Stats().HeldUntil, "the partner has refused nothing")
		})
	})
	t.Run("no time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPartner()
			p.answer = failing
			client := &http.Client{
				Transport: transport.New(p, newShaper(t, scheduler.PerSecond(10)), transport.WithRetry(transport.Retry{})),
				Timeout:   time.Second,
			}
			_, err := client.Get("http://api.example/")
			require.ErrorIs(t, err, broken, "and not that of the Timeout")
			require.Zero(t, time.Since(p.started))
			require.Len(t, p.seen(), 1)
		})
	})
	t.Run("cancelled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPartner()
			p.answer = failing
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(300*ms, cancel)
			_, err := transport.New(p, ready, transport.WithRetry(transport.Retry{})).RoundTrip(get(t, ctx, "/"))
			require.Equal(t, broken, err)
			require.Equal(t, 300*ms, time.Since(p.started))
		})
	})
}

// No room at a Transport below is no failure to send, and asking again would only make its
// line longer.
func TestLocalRefusalBelowIsNotTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		inner := transport.New(newPartner(), waitFunc(func(context.Context) error { asked++; return errFull }))
		outer := transport.New(inner, newShaper(t, scheduler.PerSecond(10)), transport.WithRetry(transport.Retry{}))
		began := time.Now()
		_, err := outer.RoundTrip(get(t, t.Context(), "/"))
		require.ErrorIs(t, err, errFull)
		require.Equal(t, 1, asked)
		require.Equal(t, began, time.Now())
	})
}

// A request is sent again with what it has now said to be: its cost, its key and its place.
func TestResendPaysAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		script(p, status(http.StatusTooManyRequests, "Retry-After: 0"))
		var asked int
		tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)), transport.WithRetry(transport.Retry{}), transport.WithMaxInFlight(1),
			transport.WithCost(func(*http.Request) int64 { asked++; return 5 }))
		for range 2 {
			_, err := tr.RoundTrip(get(t, t.Context(), "/"))
			require.NoError(t, err)
		}
		require.Equal(t, steps(0, 500*ms, 3), times(p.seen()))
		require.Equal(t, 2, asked, "once per RoundTrip")
	})
}

// What Stripe asks not to send again is not, key or no key.
func TestStripeSaysNotToRetry(t *testing.T) {
	for value, want := range map[string]int{"false": 1, "true": 2} {
		synctest.Test(t, func(t *testing.T) {
			p := newPartner()
			script(p, status(http.StatusTooManyRequests, "Stripe-Should-Retry: "+value))
			tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)), transport.WithRetry(transport.Retry{}),
				transport.WithClassifier(feedback.Stripe))
			req, made := replayable(t, "a payment", "k1")
			_, err := tr.RoundTrip(req)
			require.NoError(t, err)
			require.Len(t, p.seen(), want, value)
			closedOnce(t, made)
		})
	}
}

// What failed for a reason that lasts is not sent again.
func TestFailureThatLasts(t *testing.T) {
	cancelled := make(chan struct{})
	close(cancelled)
	untrusted := x509.UnknownAuthorityError{Cert: &x509.Certificate{}}
	for name, tc := range map[string]struct {
		err    error
		change func(*http.Request)
		want   int
	}{
		"reset":                {err: syscall.ECONNRESET, want: 2},
		"refused":              {err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, want: 2},
		"https":                {err: syscall.ECONNRESET, change: func(req *http.Request) { req.URL.Scheme = "https" }, want: 2},
		"certificate":          {err: &tls.CertificateVerificationError{Err: untrusted}, want: 1},
		"certificate, wrapped": {err: fmt.Errorf("proxy: %w", &tls.CertificateVerificationError{Err: io.EOF}), want: 1},
		"authority":            {err: untrusted, want: 1},
		"host name":            {err: x509.HostnameError{Certificate: &x509.Certificate{}}, want: 1},
		"expired":              {err: x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: x509.Expired}, want: 1},
		"no roots":             {err: x509.SystemRootsError{}, want: 1},
		"HTTP for HTTPS":       {err: http.ErrSchemeMismatch, want: 1},
		"cancelled":            {err: fmt.Errorf("dial: %w", context.Canceled), want: 1},
		"Request.Cancel":       {err: errors.New("net/http: request canceled"), change: func(req *http.Request) { req.Cancel = cancelled }, want: 1},
		"Request.Cancel, open": {err: syscall.ECONNRESET, change: func(req *http.Request) { req.Cancel = make(chan struct{}) }, want: 2},
		"unknown scheme":       {err: errors.New(`unsupported protocol scheme "ftp"`), change: func(req *http.Request) { req.URL.Scheme = "ftp" }, want: 1},
		"no scheme":            {err: errors.New(`unsupported protocol scheme ""`), change: func(req *http.Request) { req.URL.Scheme = "" }, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPartner()
				p.answer = func(*http.Request) (*http.Response, error) { return nil, tc.err }
				req := get(t, t.Context(), "/")
				if tc.change != nil {
					tc.change(req)
				}
				_, err := transport.New(p, ready, transport.WithRetry(transport.Retry{Attempts: 2})).RoundTrip(req)
				require.Equal(t, tc.err, err)
				require.Len(t, p.seen(), tc.want)
			})
		})
	}
}

// drip is a body that never ends: a byte at a time, and after the last one nothing until
// it is closed.
type drip struct {
	every  time.Duration
	most   int
	read   int
	closed chan struct{}
}

func (d *drip) Read(p []byte) (int, error) {
	if d.read == d.most {
		<-d.closed
		return 0, errors.New("closed")
	}
	select {
	case <-time.After(d.every):
	case <-d.closed:
		return 0, errors.New("closed")
	}
	d.read++
	p[0] = 'x'
	return 1, nil
}

func (d *drip) Close() error { close(d.closed); return nil }

// A refusal whose body never ends keeps no caller waiting: neither for the next attempt, nor
// for the refusal itself if there is none.
func TestRefusalThatNeverEnds(t *testing.T) {
	for name, tc := range map[string]drip{
		"nothing":          {every: ms, most: 0},
		"a little":         {every: ms, most: 10},
		"a byte a second":  {every: sec - ms, most: 1_000_000},
		"many bytes":       {every: ms, most: 1_000_000},
		"a byte in a year": {every: 365 * 24 * time.Hour, most: 1},
	} {
		for _, length := range []int64{-1, 100} {
			drip := func(p *partner, after string) *drip {
				d := tc
				d.closed = make(chan struct{})
				script(p, func(req *http.Request) (*http.Response, error) {
					resp := says(req, http.StatusTooManyRequests, "", "Retry-After: "+after)
					resp.Body, resp.ContentLength = &d, length
					return resp, nil
				})
				return &d
			}
			t.Run(fmt.Sprint(name, "/", length, "/sent again"), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newPartner()
					d := drip(p, "5")
					tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)), transport.WithRetry(transport.Retry{}))
					resp, err := tr.RoundTrip(get(t, t.Context(), "/"))
					require.NoError(t, err)
					require.Equal(t, http.StatusOK, resp.StatusCode)
					require.Equal(t, []time.Duration{0, 5 * sec}, times(p.seen()))
					<-d.closed
				})
			})
			t.Run(fmt.Sprint(name, "/", length, "/no time"), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newPartner()
					d := drip(p, "60")
					tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)), transport.WithRetry(transport.Retry{}))
					ctx, cancel := context.WithTimeout(t.Context(), 30*sec)
					defer cancel()
					resp, err := tr.RoundTrip(get(t, ctx, "/"))
					require.NoError(t, err)
					require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
					require.LessOrEqual(t, time.Since(p.started), sec)
					if n := min(tc.most, 2000); n > 0 {
						got := make([]byte, n)
						_, err = io.ReadFull(resp.Body, got)
						require.NoError(t, err)
						require.Equal(t, strings.Repeat("x", n), string(got), "nothing is lost")
					}
					time.AfterFunc(sec, func() { resp.Body.Close() })
					_, err = io.Copy(io.Discard, resp.Body)
					require.EqualError(t, err, "closed")
					require.Len(t, p.seen(), 1)
					<-d.closed
				})
			})
			t.Run(fmt.Sprint(name, "/", length, "/cancelled"), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newPartner()
					drip(p, "5")
					tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)), transport.WithRetry(transport.Retry{}))
					ctx, cancel := context.WithCancel(t.Context())
					time.AfterFunc(300*ms, cancel)
					resp, err := tr.RoundTrip(get(t, ctx, "/"))
					require.NoError(t, err)
					require.Equal(t, 300*ms, time.Since(p.started))
					require.NoError(t, resp.Body.Close())
				})
			})
		}
	}
}

// A partner that is down takes no retries away from another.
func TestRetryBudgetIsForAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		sent := map[string]int{}
		base := roundTripFunc(func(req *http.Request) (*http.Response, error) {
			sent[req.URL.Host]++
			if host := req.URL.Host; host == "dead.example" || sent[host] == 1 {
				return nil, syscall.ECONNREFUSED
			}
			return p.RoundTrip(req)
		})
		tr := transport.NewKeyed(base, nil, newGroup(t, scheduler.PerSecond(10)), transport.WithRetry(transport.Retry{}))
		for range 100 {
			_, err := tr.RoundTrip(to(t, t.Context(), "http://dead.example/"))
			require.ErrorIs(t, err, syscall.ECONNREFUSED)
		}
		require.InDelta(t, 100+10+10, sent["dead.example"], 1)
		for i := range 20 {
			_, err := tr.RoundTrip(to(t, t.Context(), fmt.Sprintf("http://h%d.example/", i)))
			require.NoError(t, err)
		}
	})
}

// Processes that were refused together do not come back together, however often it
// happens, and none stays away for less than three quarters of a minute by then or for
// more than one.
func TestBackoffSpreadsAtTheTop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		p.answer = func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }
		tr := transport.New(p, ready, transport.WithRetry(transport.Retry{Attempts: 10, Budget: 1}))
		_, err := tr.RoundTrip(get(t, t.Context(), "/"))
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		at := times(p.seen())
		require.Len(t, at, 10)
		different := map[time.Duration]bool{}
		for i := 1; i < len(at); i++ {
			wait := at[i] - at[i-1]
			if i < 7 {
				least := sec << (i - 1)
				require.GreaterOrEqual(t, wait, least)
				require.Less(t, wait, least+least/4)
				continue
			}
			require.Greater(t, wait, 45*sec)
			require.LessOrEqual(t, wait, 60*sec)
			different[wait] = true
		}
		require.Len(t, different, 3)
	})
}

// A refusal whose body comes slowly is handed at once to a caller that has no time for another
// attempt, by its deadline or by the longest delay.
func TestSlowRefusalIsHandedBackAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		waiter func(*testing.T) transport.Waiter
		opt    transport.Option
	}{
		"deadline":         {waiter: func(t *testing.T) transport.Waiter { return newShaper(t, scheduler.PerSecond(10)) }},
		"deadline, x/time": {waiter: func(*testing.T) transport.Waiter { return &limiter{interval: 100 * ms} }},
		"max delay": {
			waiter: func(t *testing.T) transport.Waiter { return newShaper(t, scheduler.PerSecond(10)) },
			opt:    transport.WithMaxDelay(5 * sec),
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPartner()
				slow, w := io.Pipe()
				script(p, func(req *http.Request) (*http.Response, error) {
					resp := says(req, http.StatusTooManyRequests, "", "Retry-After: 600")
					resp.Body, resp.ContentLength = slow, -1
					return resp, nil
				})
				opts, ctx := []transport.Option{transport.WithRetry(transport.Retry{})}, t.Context()
				if tc.opt != nil {
					opts = append(opts, tc.opt)
				} else {
					short, cancel := context.WithTimeout(ctx, 5*sec)
					defer cancel()
					ctx = short
				}
				resp, err := transport.New(p, tc.waiter(t), opts...).RoundTrip(get(t, ctx, "/"))
				require.NoError(t, err)
				require.Zero(t, time.Since(p.started))
				require.Len(t, p.seen(), 1)
				go func() {
					time.Sleep(sec)
					_, _ = io.WriteString(w, "slow down")
					w.Close()
				}()
				body, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.Equal(t, "slow down", string(body))
			})
		})
	}
}

// So is one that holds no other request, which would wait by itself for longer than there is
// time, and one whose body says so in a long text.
func TestSlowRefusalIsHandedBackIfTheWaitIsTooLong(t *testing.T) {
	handed := func(t *testing.T, p *partner, tr *transport.Transport, deadline time.Duration) time.Duration {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		sent := len(p.seen())
		resp, err := tr.RoundTrip(get(t, ctx, "/"))
		require.NoError(t, err)
		require.Len(t, p.seen(), sent+1)
		require.NoError(t, resp.Body.Close())
		return time.Since(began)
	}
	t.Run("alone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPartner()
			tr := transport.New(p, newShaper(t, scheduler.Unlimited), transport.WithRetry(transport.Retry{}))
			script(p, status(http.StatusServiceUnavailable))
			for range 4 { // the first one is sent again
				_, err := tr.RoundTrip(get(t, t.Context(), "/"))
				require.NoError(t, err)
			}
			script(p, late(http.StatusServiceUnavailable, "slow", time.Hour))
			require.Zero(t, handed(t, p, tr, 500*ms))
		})
	})
	t.Run("told in the body", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPartner()
			tr := transport.New(p, newShaper(t, scheduler.Unlimited), transport.WithRetry(transport.Retry{}), transport.WithClassifier(feedback.OpenAI))
			r, w := io.Pipe()
			script(p, func(req *http.Request) (*http.Response, error) {
				resp := says(req, http.StatusTooManyRequests, "")
				resp.Body, resp.ContentLength = r, -1
				return resp, nil
			})
			go func() {
				time.Sleep(300 * ms)
				_, _ = io.WriteString(w, `{"error":{"message":"Please try again in 20s."}}`+strings.Repeat(" ", feedback.MaxPeek))
			}()
			require.Equal(t, 300*ms, handed(t, p, tr, 10*sec))
		})
	})
}
