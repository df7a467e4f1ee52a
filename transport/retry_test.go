package transport_test

import (
	"context"
	"errors"
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

// A partner who refuses everything is not sent everything three times: beside the ten
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
				script(p, always(status(http.StatusTooManyRequests, "Retry-After: 0"), 10_000)...)
				tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)), transport.WithRetry(tc.retry))
				for range 200 {
					resp, err := tr.RoundTrip(get(t, t.Context(), "/"))
					require.NoError(t, err)
					require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
				}
				require.InDelta(t, tc.want, len(p.seen()), 1, "a budget is a float")
				require.Equal(t, steps(0, 100*ms, len(p.seen())), times(p.seen()), "each in its turn")
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
		"POST with X-Idempotency-Key":   {method: "POST", header: "X-Idempotency-Key", status: 503, want: 2},
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

// A resend takes its turn behind those who wait already.
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
