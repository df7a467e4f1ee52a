package transport_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	loopback "github.com/sluice-go/sluice/internal/partner"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/transport"
	"github.com/stretchr/testify/require"
)

// replayable is a POST with a GetBody. bodies are those that were made for it.
func replayable(t *testing.T, payload, key string) (req *http.Request, bodies *[]*countedBody) {
	t.Helper()
	bodies = new([]*countedBody)
	body := func() (io.ReadCloser, error) {
		b := &countedBody{Reader: strings.NewReader(payload)}
		*bodies = append(*bodies, b)
		return b, nil
	}
	first, _ := body()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://api.example/v1/payments", first)
	require.NoError(t, err)
	req.ContentLength, req.GetBody = int64(len(payload)), body
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	return req, bodies
}

// closedOnce checks that each of the bodies was closed exactly once.
func closedOnce(t *testing.T, bodies *[]*countedBody) {
	t.Helper()
	for i, b := range *bodies {
		require.Equal(t, 1, b.closed, "body %d", i)
	}
}

// A resend carries the same bytes, comes when the partner said and in its own turn, and
// the answer before it is read to its end and closed: one connection is enough.
//
// Sources: alpacahq/alpaca-trade-api-go#307, mattn/go-mastodon#219,
// google/go-containerregistry#2454, auth0/auth0-java#174, gojek/heimdall#45,
// Kuadrant/mcp-gateway#1332.
func TestCaseE02RetryAfter429(t *testing.T) {
	payload := strings.Repeat("x", 446)

	t.Run("whole body again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var got []string
			var at []time.Duration
			var dials int
			began := time.Now()
			base, shut := pipeServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				got, at = append(got, string(b)), append(at, time.Since(began))
				if len(got) == 1 {
					w.Header().Set("Retry-After", "1")
					w.Header().Set("Connection", "close")
					w.WriteHeader(http.StatusTooManyRequests)
					_, _ = io.WriteString(w, strings.Repeat("y", 32<<10))
				}
			}))
			s := newShaper(t, scheduler.PerSecond(10))
			tr := transport.New(base, s, transport.WithRetry(transport.Retry{Resend429: true}))
			req, bodies := replayable(t, payload, "")
			req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
				GotConn: func(info httptrace.GotConnInfo) {
					if !info.Reused {
						dials++
					}
				},
			}))
			resp, err := tr.RoundTrip(req)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, resp.StatusCode)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, []string{payload, payload}, got)
			require.Equal(t, []time.Duration{0, sec}, at)
			require.EqualValues(t, 2, s.Stats().Left, "each took its slot")
			require.Equal(t, 2, dials)
			require.Same(t, req, resp.Request)
			base.CloseIdleConnections()
			shut()
			synctest.Wait() // net/http closes bodies on goroutines of its own
			closedOnce(t, bodies)
		})
	})
	t.Run("without GetBody", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPartner()
			script(p, func(req *http.Request) (*http.Response, error) {
				return says(req, http.StatusTooManyRequests, "too many", "Retry-After: 1"), nil
			})
			tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)), transport.WithRetry(transport.Retry{Resend429: true}))
			req, body, unchanged := post(t, t.Context())
			req.Header.Set("Idempotency-Key", "k")
			resp, err := tr.RoundTrip(req)
			require.NoError(t, err)
			require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
			rest, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, "too many", string(rest))
			require.Len(t, p.seen(), 1)
			require.Equal(t, 1, body.closed)
			req.Header.Del("Idempotency-Key")
			unchanged()
		})
	})
	t.Run("five with keep-alive", func(t *testing.T) {
		p := startPartner(t, loopback.Config{SMS: loopback.Endpoint{
			Limit:     loopback.Limit{Units: 1000, Window: time.Second},
			Misbehave: loopback.Mood{Hint: loopback.RetryAfterZero, Pad: 32 << 10},
		}})
		p.SMS().Refuse(5, 0)
		base := &http.Transport{}
		defer base.CloseIdleConnections()
		tr := transport.New(base, newShaper(t, scheduler.PerSecond(1000)),
			transport.WithRetry(transport.Retry{Attempts: 6, Resend429: true}))
		resp, err := tr.RoundTrip(p.message(t, t.Context(), "a", ""))
		require.NoError(t, err)
		require.Equal(t, http.StatusAccepted, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
		st := p.Stats()
		require.EqualValues(t, 6, st.Wire.Requests)
		require.EqualValues(t, 1, st.Wire.Connections)
	})
}

// What may have happened is never sent again without a key that makes it safe.
//
// Sources: stripe/stripe-node#559, stripe/stripe-php#447,
// beam-community/stripity-stripe#564, PerpetualSoftware/pad#882.
func TestCaseE15PaymentsAreNotResent(t *testing.T) {
	reset := errors.New("write: connection reset by peer")
	broken := func(*http.Request) (*http.Response, error) { return nil, reset }
	late := func(req *http.Request) (*http.Response, error) {
		time.Sleep(2 * time.Second)
		return says(req, http.StatusServiceUnavailable, ""), nil
	}
	failed := status(http.StatusInternalServerError)
	tooMany := status(http.StatusTooManyRequests)
	for name, tc := range map[string]struct {
		first func(*http.Request) (*http.Response, error)
		key   string
		retry transport.Retry
		want  int // times sent
	}{
		"a reset":                     {broken, "", transport.Retry{Resend429: true}, 1},
		"b 503 after 2 s":             {late, "", transport.Retry{Resend429: true}, 1},
		"500":                         {failed, "", transport.Retry{Resend429: true}, 1},
		"c 429":                       {tooMany, "", transport.Retry{}, 1},
		"c 429 that is safe":          {tooMany, "", transport.Retry{Resend429: true}, 2},
		"a reset, with key":           {broken, "k1", transport.Retry{}, 2},
		"b 503 after 2 s, with key":   {late, "k1", transport.Retry{}, 2},
		"c 429, with key":             {tooMany, "k1", transport.Retry{}, 2},
		"500, with key: no refusal":   {failed, "k1", transport.Retry{}, 1},
		"an empty key makes not safe": {tooMany, " ", transport.Retry{}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPartner()
				var bodies, keys []string
				script(p, tc.first)
				answered := p.answer
				base := roundTripFunc(func(req *http.Request) (*http.Response, error) {
					b, err := io.ReadAll(req.Body)
					require.NoError(t, err)
					bodies, keys = append(bodies, string(b)), append(keys, req.Header.Get("Idempotency-Key"))
					p.answer = answered
					return p.RoundTrip(req)
				})
				s := newShaper(t, scheduler.PerSecond(10))
				req, made := replayable(t, "a payment", strings.TrimSpace(tc.key))
				if tc.key == " " {
					req.Header.Set("Idempotency-Key", "")
				}
				resp, err := transport.New(base, s, transport.WithRetry(tc.retry)).RoundTrip(req)
				require.Len(t, bodies, tc.want)
				for i := range bodies {
					require.Equal(t, "a payment", bodies[i])
					require.Equal(t, strings.TrimSpace(tc.key), keys[i])
				}
				require.EqualValues(t, tc.want, s.Stats().Left, "each resend takes a slot")
				closedOnce(t, made)
				switch {
				case tc.want == 2:
					require.NoError(t, err)
					require.Equal(t, http.StatusOK, resp.StatusCode)
					require.GreaterOrEqual(t, p.seen()[1].at-p.seen()[0].at, time.Second, "never at once")
				case errors.Is(err, reset):
					require.Equal(t, reset, err)
				default:
					require.NoError(t, err)
					require.GreaterOrEqual(t, resp.StatusCode, 400)
				}
			})
		})
	}
}
