package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	"github.com/sluice-go/sluice/transport/feedback"
	"github.com/stretchr/testify/require"
)

// lateBody is a body that comes after a while, all of it at once.
type lateBody struct {
	text   io.Reader
	err    error // in place of the end
	comes  <-chan time.Time
	closed chan struct{}
	closes atomic.Int64
}

var errGone = errors.New("connection gone")

func newLateBody(text string, after time.Duration) *lateBody {
	return &lateBody{text: strings.NewReader(text), err: io.EOF, comes: time.After(after), closed: make(chan struct{})}
}

func (b *lateBody) Read(p []byte) (int, error) {
	if b.comes != nil {
		select {
		case <-b.comes:
			b.comes = nil
		case <-b.closed:
			return 0, errGone
		}
	}
	n, err := b.text.Read(p)
	if err != nil {
		err = b.err
	}
	return n, err
}

func (b *lateBody) Close() error {
	if b.closes.Add(1) == 1 {
		close(b.closed)
	}
	return nil
}

// late answers with a body that comes after a while.
func late(code int, body string, after time.Duration, lines ...string) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		resp := says(req, code, "", lines...)
		resp.Body, resp.ContentLength = newLateBody(body, after), -1
		return resp, nil
	}
}

const jsonLine = "Content-Type: application/json"

// A refusal whose body comes slowly is handed to a caller that cannot wait anyway, at once:
// whether it is the context or the longest delay that rules another attempt out.
func TestSlowRefusal(t *testing.T) {
	for name, tc := range map[string]struct {
		classify feedback.Classifier
		opts     []transport.Option
		deadline time.Duration
	}{
		"deadline":                    {feedback.Default, nil, 5 * sec},
		"deadline, a body to look at": {feedback.OpenAI, nil, 5 * sec},
		"max delay":                   {feedback.Twilio, []transport.Option{transport.WithMaxDelay(5 * sec)}, time.Hour},
		"no retry":                    {feedback.Stripe, []transport.Option{transport.WithRetry(transport.Retry{Attempts: 2})}, 600 * sec},
	} {
		for _, waiter := range []string{"Shaper", "limiter"} {
			t.Run(name+"/"+waiter, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newPartner()
					script(p, late(http.StatusTooManyRequests, "slow", 5*sec, "Retry-After: 600"))
					var w transport.Waiter = newShaper(t, scheduler.PerSecond(10))
					if waiter == "limiter" {
						w = &limiter{interval: 100 * ms}
					}
					opts := append([]transport.Option{transport.WithClassifier(tc.classify), transport.WithRetry(transport.Retry{})}, tc.opts...)
					tr := transport.New(p, w, opts...)
					ctx, cancel := context.WithTimeout(t.Context(), tc.deadline)
					defer cancel()
					resp, err := tr.RoundTrip(get(t, ctx, "/"))
					require.NoError(t, err)
					require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
					require.Zero(t, time.Since(p.started))
					body, err := io.ReadAll(resp.Body)
					require.NoError(t, err)
					require.Equal(t, "slow", string(body))
					require.Equal(t, 5*sec, time.Since(p.started))
					require.NoError(t, resp.Body.Close())
				})
			})
		}
	}
}

// The time that stands in the header holds the line when the header is there, also if the
// classifier wants to see a body that takes its time, and the caller has the answer then.
func TestHeaderIsHeededBeforeTheBody(t *testing.T) {
	for name, classify := range map[string]feedback.Classifier{
		"AWS": feedback.AWS, "OpenAI": feedback.OpenAI, "Stripe": feedback.Stripe, "Twilio": feedback.Twilio,
		"GitHub": feedback.GitHub, "Google": feedback.Google, "of one's own": func(a *feedback.Answer) feedback.Verdict {
			_ = a.Body()
			return feedback.Default(a)
		},
	} {
		backoff := [2]time.Duration{sec, 1250 * ms} // from when the header was there
		if name == "GitHub" {
			backoff = [2]time.Duration{time.Minute, time.Minute}
		}
		for lines, want := range map[string][2]time.Duration{
			"Retry-After: 600": {600 * sec, 600 * sec},
			"X-None: 0":        backoff,
		} {
			t.Run(name+"/"+lines, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newPartner()
					script(p, late(http.StatusTooManyRequests, `{"error":{}}`, 5*sec, lines))
					tr := transport.New(p, newShaper(t, scheduler.PerSecond(100)), transport.WithClassifier(classify))
					var handed time.Duration
					slow := roundTripFunc(func(req *http.Request) (*http.Response, error) {
						resp, err := tr.RoundTrip(req)
						if err == nil && resp.StatusCode != http.StatusOK {
							handed = time.Since(p.started)
							body, err := io.ReadAll(resp.Body)
							if err != nil || string(body) != `{"error":{}}` {
								t.Errorf("%q, %v", body, err)
							}
						}
						return resp, err
					})
					wait := sendAll(t, slow, 51, func(int) *http.Request { return get(t, t.Context(), "/") })
					for _, err := range wait() {
						require.NoError(t, err)
					}
					require.LessOrEqual(t, handed, 50*ms)
					at := times(p.seen())
					require.GreaterOrEqual(t, at[1], want[0], "none is sent meanwhile")
					require.LessOrEqual(t, at[1], want[1])
					require.Equal(t, steps(at[1], 10*ms, 50), at[1:])
				})
			})
		}
	}
}

// While it is not known yet whether a refusal is about a limit, nothing else leaves; if it is
// about none, the line goes on then and no hold is left behind.
func TestBodyThatTellsOfNoLimit(t *testing.T) {
	for name, tc := range map[string]struct {
		after time.Duration
		want  time.Duration // when the next one leaves
		most  time.Duration
	}{
		"with the header": {0, 10 * ms, 10 * ms},
		"a little later":  {25 * ms, 30 * ms, 40 * ms},
		"too late":        {100 * ms, sec, 1250 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPartner()
				script(p, late(http.StatusTooManyRequests, `{"error":{"code":"lock_timeout"}}`, tc.after))
				s := newShaper(t, scheduler.PerSecond(100))
				tr := transport.New(p, s, transport.WithClassifier(feedback.Stripe))
				wait := sendAll(t, tr, 3, func(int) *http.Request { return get(t, t.Context(), "/") })
				for _, err := range wait() {
					require.NoError(t, err)
				}
				at := times(p.seen())
				require.GreaterOrEqual(t, at[1], tc.want)
				require.LessOrEqual(t, at[1], tc.most)
				require.Equal(t, 10*ms, at[2]-at[1])
			})
		})
	}
}

// What a body says that comes later only moves the hold forward. Its time counts from when
// the header came, as the partner has measured it then.
func TestBodyRefinesTheHeader(t *testing.T) {
	const again = `{"error":{"message":"Please try again in 20s."}}`
	for name, tc := range map[string]struct {
		classify feedback.Classifier
		answer   func(*http.Request) (*http.Response, error)
		handed   time.Duration
		want     time.Duration
	}{
		"a longer time": {feedback.OpenAI, late(429, again, 700*ms), 50 * ms, 20 * sec},
		"a shorter one": {feedback.Any(func(a *feedback.Answer) feedback.Verdict {
			if len(a.Body()) == 0 {
				return feedback.Verdict{Refused: true, Stated: true, Wait: time.Minute}
			}
			return feedback.Verdict{Refused: true, Stated: true, Wait: sec}
		}), late(429, again, sec), 0, time.Minute},
		"no refusal by its header": {feedback.Vonage, late(200, `{"messages":[{"status":"1","error-text":"please wait [ 9000 ] and retry"}]}`, 700*ms, jsonLine), 50 * ms, 9 * sec},
		"too late to be read":      {feedback.OpenAI, late(429, again, 11*sec), 50 * ms, -1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPartner()
				script(p, tc.answer)
				tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)), transport.WithClassifier(tc.classify))
				resp, err := tr.RoundTrip(get(t, t.Context(), "/"))
				require.NoError(t, err)
				require.Equal(t, tc.handed, time.Since(p.started))
				pass(900*ms - tc.handed)
				_, err = tr.RoundTrip(get(t, t.Context(), "/"))
				require.NoError(t, err)
				if at := p.seen()[1].at; tc.want < 0 {
					require.LessOrEqual(t, at, 1250*ms)
				} else {
					require.Equal(t, tc.want, at)
				}
				if tc.want < 0 {
					pass(12 * sec)
					mustSend(t, tr, "/")
				}
				require.NoError(t, resp.Body.Close())
			})
		})
	}
}

// Whether it comes at once, slowly or never to its end: the caller reads all of the body, the
// same error behind it, and it is closed once; and closing it ends what reads it.
func TestBodyThatIsReadAhead(t *testing.T) {
	look := func(a *feedback.Answer) feedback.Verdict { a.Body(); return feedback.Verdict{} }
	for _, after := range []time.Duration{0, 20 * ms, sec, time.Hour} {
		for _, size := range []int{0, 1, feedback.MaxPeek - 1, feedback.MaxPeek, feedback.MaxPeek + 1, 3 * feedback.MaxPeek} {
			for _, end := range []error{io.EOF, errGone} {
				synctest.Test(t, func(t *testing.T) {
					text := strings.Repeat("0123456789abcdef", size/16+1)[:size]
					b := newLateBody(text, after)
					b.err = end
					p := newPartner()
					script(p, func(req *http.Request) (*http.Response, error) {
						resp := answer(req, http.StatusOK)
						resp.Body = b
						return resp, nil
					})
					tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)), transport.WithClassifier(look))
					resp, err := tr.RoundTrip(get(t, t.Context(), "/"))
					require.NoError(t, err)
					require.Equal(t, min(after, 50*ms), time.Since(p.started))
					got, err := io.ReadAll(resp.Body)
					require.Equal(t, text, string(got))
					if end == io.EOF {
						require.NoError(t, err)
					} else {
						require.Equal(t, end, err)
					}
					require.Equal(t, after, time.Since(p.started))
					require.NoError(t, resp.Body.Close())
					require.NoError(t, resp.Body.Close())
					require.EqualValues(t, 1, b.closes.Load())
					_, err = resp.Body.Read(make([]byte, 1))
					require.Error(t, err)
				})
				synctest.Test(t, func(t *testing.T) { // closed at once; the bubble waits for all goroutines
					b := newLateBody("x", after)
					p := newPartner()
					script(p, func(req *http.Request) (*http.Response, error) {
						resp := answer(req, http.StatusOK)
						resp.Body = b
						return resp, nil
					})
					tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)), transport.WithClassifier(look))
					resp, err := tr.RoundTrip(get(t, t.Context(), "/"))
					require.NoError(t, err)
					require.NoError(t, resp.Body.Close())
					require.EqualValues(t, 1, b.closes.Load())
					synctest.Wait()
					require.LessOrEqual(t, time.Since(p.started), 50*ms)
				})
			}
		}
	}
}

// What only the body says decides about another attempt, if it comes in time for that.
func TestBodyDecidesAboutARetry(t *testing.T) {
	const unprocessed, noMoney = `{"code":20429}`, `{"error":{"code":"insufficient_quota"}}`
	for name, tc := range map[string]struct {
		classify feedback.Classifier
		body     string
		after    time.Duration
		status   int
		sent     []time.Duration
		handed   time.Duration
	}{
		"with the header":         {feedback.Twilio, unprocessed, 0, 200, []time.Duration{0, 5 * sec}, 5 * sec},
		"later":                   {feedback.Twilio, unprocessed, 900 * ms, 200, []time.Duration{0, 5 * sec}, 5 * sec},
		"too late":                {feedback.Twilio, unprocessed, 3 * sec, 429, []time.Duration{0}, sec},
		"no refusal after all":    {feedback.OpenAI, noMoney, 0, 429, []time.Duration{0}, 0},
		"later no refusal at all": {feedback.OpenAI, noMoney, 900 * ms, 429, []time.Duration{0}, 900 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPartner()
				script(p, late(429, tc.body, tc.after, "Retry-After: 5"))
				tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)),
					transport.WithClassifier(tc.classify), transport.WithRetry(transport.Retry{}))
				req, _ := replayable(t, "a message", "")
				resp, err := tr.RoundTrip(req.WithContext(t.Context()))
				require.NoError(t, err)
				require.Equal(t, tc.status, resp.StatusCode)
				require.Equal(t, tc.handed, time.Since(p.started))
				require.Equal(t, tc.sent, times(p.seen()))
				if tc.status == 429 {
					body, err := io.ReadAll(resp.Body)
					require.NoError(t, err)
					require.Equal(t, tc.body, string(body))
				}
				require.NoError(t, resp.Body.Close())
			})
		})
	}
}

// A classifier that panics about a body does so on the goroutine of the caller.
func TestClassifierThatPanicsAboutABody(t *testing.T) {
	for _, after := range []time.Duration{0, sec} {
		synctest.Test(t, func(t *testing.T) {
			b := newLateBody("x", after)
			p := newPartner()
			script(p, func(req *http.Request) (*http.Response, error) {
				resp := answer(req, http.StatusOK)
				resp.Body = b
				return resp, nil
			})
			tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)), transport.WithClassifier(func(a *feedback.Answer) feedback.Verdict {
				if len(a.Body()) > 0 {
					panic("a body")
				}
				return feedback.Verdict{}
			}))
			require.PanicsWithValue(t, "a body", func() {
				resp, err := tr.RoundTrip(get(t, t.Context(), "/"))
				require.NoError(t, err)
				pass(2 * sec)
				resp.Body.Close()
			})
			require.EqualValues(t, 1, b.closes.Load())
		})
	}
}

// The caller may change the header that it was given, while the body is still awaited.
func TestHeaderIsTheCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		script(p, late(429, `{"error":{"message":"try again in 20s"}}`, 100*ms))
		s := newShaper(t, scheduler.PerSecond(10), shaper.WithTolerance(0))
		tr := transport.New(p, s, transport.WithClassifier(feedback.OpenAI))
		resp, err := tr.RoundTrip(get(t, t.Context(), "/"))
		require.NoError(t, err)
		resp.Header.Set("Retry-After", "3600")
		pass(sec)
		require.Equal(t, p.started.Add(20*sec), s.Stats().HeldUntil)
		require.NoError(t, resp.Body.Close())
	})
}
