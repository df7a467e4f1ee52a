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

// The cases from the field about refusals. How an answer is read is tested in package
// feedback; here it is what becomes of the requests behind it.

const (
	ms  = time.Millisecond
	sec = time.Second
)

// gateAfter sends a request at 0, which gets the answer, and another one at once. It
// returns when the second one reached the partner, as measured from the answer, which is then
// as the caller has it.
func gateAfter(t *testing.T, first *http.Response, opts ...transport.Option) time.Duration {
	t.Helper()
	var at time.Duration
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		script(p, func(req *http.Request) (*http.Response, error) { first.Request = req; return first, nil })
		tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)), opts...)
		resp, err := tr.RoundTrip(get(t, t.Context(), "/0"))
		require.NoError(t, err)
		require.Equal(t, first.StatusCode, resp.StatusCode, "a refusal is a response")
		_, err = tr.RoundTrip(get(t, t.Context(), "/1"))
		require.NoError(t, err)
		at = p.seen()[1].at
		*first = *resp
	})
	return at
}

// A date holds the line for what it is away from the partner's own Date: the clock of
// this process does not matter (a bubble's clock stands in the year 2000).
//
// Sources: NousResearch/hermes-agent#84738, wisecom-oy/atlas#229,
// duolahypercho/codex-router#573, serokell/xrefcheck#99, openai/openai-java#878.
func TestCaseE03RetryAfterAsADate(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"Tue, 14 Nov 2023 22:15:20 GMT":   120 * sec,
		"Tuesday, 14-Nov-23 22:15:20 GMT": 120 * sec,
		"Tue Nov 14 22:15:20 2023":        120 * sec,
		"Tue, 14 Nov 2023 22:12:50 GMT":   100 * ms, // past: the pace as ever
	} {
		t.Run(value, func(t *testing.T) {
			const date = "Date: Tue, 14 Nov 2023 22:13:20 GMT"
			require.Equal(t, want, gateAfter(t, says(nil, http.StatusTooManyRequests, "", date, "Retry-After: "+value)))
		})
	}
	t.Run("clock 45 s ahead", func(t *testing.T) {
		for _, skew := range []time.Duration{45 * sec, -45 * sec} {
			synctest.Test(t, func(t *testing.T) {
				theirs := time.Now().Add(-skew).UTC()
				at := theirs.Add(2 * time.Minute).Format(http.TimeFormat)
				p := newPartner()
				script(p, status(http.StatusTooManyRequests, "Date: "+theirs.Format(http.TimeFormat), "Retry-After: "+at))
				tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)))
				for range 2 {
					_, err := tr.RoundTrip(get(t, t.Context(), "/"))
					require.NoError(t, err)
				}
				require.Equal(t, []time.Duration{0, 120 * sec}, times(p.seen()))
			})
		}
	})
}

// No number lets the line go before its time, or for ever.
//
// Sources: MONEI/Shopify-api-node#135, urllib3/urllib3#3743,
// hashicorp/go-retryablehttp#297, apify/crawlee-python#1995,
// pydantic/pydantic-ai#7073, ktorio/ktor#5347.
func TestCaseE04RetryAfterNumbersThatBreakParsers(t *testing.T) {
	const absent = -1
	for value, want := range map[string]time.Duration{
		"120":                  120 * sec,
		"0":                    100 * ms, // the pace holds all the same
		"-5":                   absent,
		"2.0":                  2 * sec,
		"2.5":                  2500 * ms,
		" 5 ":                  5 * sec,
		"9999999999":           time.Hour,
		"9223372037":           time.Hour,
		"99999999999999999999": time.Hour,
		"soon":                 absent,
		"":                     absent,
	} {
		t.Run(value, func(t *testing.T) {
			at := gateAfter(t, says(nil, http.StatusTooManyRequests, "", "Retry-After: "+value))
			if want == absent {
				require.GreaterOrEqual(t, at, sec)
				require.LessOrEqual(t, at, 1250*ms)
				return
			}
			require.Equal(t, want, at)
		})
	}
	t.Run("0 for ever", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPartner()
			script(p, always(status(http.StatusTooManyRequests, "Retry-After: 0"), 100)...)
			tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)), transport.WithRetry(transport.Retry{Attempts: 4}))
			resp, err := tr.RoundTrip(get(t, t.Context(), "/"))
			require.NoError(t, err)
			require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
			at := times(p.seen())
			require.Len(t, at, 4)
			require.Equal(t, 100*ms, at[1], "now is believed once")
			require.GreaterOrEqual(t, at[2]-at[1], sec)
			require.GreaterOrEqual(t, at[3]-at[2], 2*sec)
		})
	})
}

// Sources: withcoral/coral#89, zalando/restful-api-guidelines#379,
// cloudfoundry/cloud_controller_ng#2544, RocketChat/docs-old#1358,
// pubg/api-documentation-content#61, utksh1/SecuScan#1838.
func TestCaseE05EpochDeltaOrMilliseconds(t *testing.T) {
	const date = "Date: Tue, 14 Nov 2023 22:13:20 GMT" // 1,700,000,000
	for name, tc := range map[string]struct {
		lines []string
		opts  []transport.Option
		want  time.Duration
	}{
		"epoch":           {lines: []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1700000060"}, want: time.Minute},
		"delta":           {lines: []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 60"}, want: time.Minute},
		"milliseconds":    {lines: []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1700000060000"}, want: time.Minute},
		"past epoch":      {lines: []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1699999990"}, want: 100 * ms},
		"RateLimit-Reset": {lines: []string{"RateLimit-Remaining: 0", "RateLimit-Reset: 60"}, want: time.Minute},
		"epoch Retry-After": {
			lines: []string{"Retry-After: 1700000060"},
			want:  time.Hour, // above the cap, and never half a century
		},
		"epoch Retry-After, with the profile": {
			lines: []string{"Retry-After: 1700000060"},
			opts:  []transport.Option{transport.WithClassifier(feedback.EpochRetryAfter(nil))},
			want:  time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			resp := says(nil, http.StatusTooManyRequests, "", append(tc.lines, date)...)
			require.Equal(t, tc.want, gateAfter(t, resp, tc.opts...))
		})
	}
}

// One refusal closes the gate for all, and it opens for one after the other.
//
// Sources: hivecommons/hive#4640, google/go-github#2634, gitmoot/gitmoot#692,
// codepvg/leetcode-ranking#380, vectorize-io/hindsight#3390.
func TestCaseE06OneRefusalClosesTheGateForAll(t *testing.T) {
	for burst, before := range map[int][]time.Duration{
		1: {0, 100 * ms, 200 * ms},
		5: {0, 0, 0, 0, 0, 100 * ms, 200 * ms},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPartner()
			p.answer = func(req *http.Request) (*http.Response, error) {
				refuse := time.Since(p.started) == 200*ms
				time.Sleep(50 * ms)
				if refuse {
					return says(req, http.StatusTooManyRequests, "", "Retry-After: 60"), nil
				}
				return answer(req, http.StatusOK), nil
			}
			tr := transport.New(p, newShaper(t, scheduler.PerSecond(10), shaper.WithBurst(burst)))
			const impatient = 19
			wait := sendAll(t, tr, 20, func(i int) *http.Request {
				if i != impatient {
					return get(t, t.Context(), "/")
				}
				ctx, cancel := context.WithTimeout(t.Context(), 60*sec)
				t.Cleanup(cancel)
				return get(t, ctx, "/")
			})
			errs := wait()
			for i, err := range errs[:impatient] {
				require.NoError(t, err, i)
			}
			var e *transport.Error
			require.ErrorAs(t, errs[impatient], &e)
			require.ErrorIs(t, e, context.DeadlineExceeded)
			require.Equal(t, http.StatusTooManyRequests, e.Status)
			require.Equal(t, 250*ms, e.Waited, "it fails when the hold is known, and not when its time is up")
			reopened := steps(60*sec+250*ms, 100*ms, 19-len(before))
			require.Equal(t, append(before, reopened...), times(p.seen()), "burst %d", burst)
		})
	}
}

// Sources: agentconnect-md/agentconnect#1981, gofri/go-github-ratelimit#38,
// nozzlegear/ShopifySharp#350, Shopify/shopify-api-ruby#899,
// italia/publiccode-crawler#323.
func TestCaseE11ThrottlingThatDoesNotLookLikePlain429(t *testing.T) {
	t.Run("a 403 with Retry-After and budget left", func(t *testing.T) {
		resp := says(nil, http.StatusForbidden, "", "Retry-After: 60", "X-RateLimit-Remaining: 4114")
		require.Equal(t, time.Minute, gateAfter(t, resp))
	})
	t.Run("b plain 403", func(t *testing.T) {
		require.Equal(t, 100*ms, gateAfter(t, says(nil, http.StatusForbidden, "")))
	})
	t.Run("c 429 for ever with budget left", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPartner()
			script(p, always(status(http.StatusTooManyRequests, "X-Shopify-Shop-Api-Call-Limit: 1/40"), 100)...)
			tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)), transport.WithRetry(transport.Retry{Attempts: 3}))
			resp, err := tr.RoundTrip(get(t, t.Context(), "/"))
			require.NoError(t, err)
			require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
			at := times(p.seen())
			require.Len(t, at, 3)
			require.GreaterOrEqual(t, at[1], sec)
			require.Greater(t, at[2]-at[1], at[1], "growing")
			require.GreaterOrEqual(t, at[2]-at[1], 2*sec)
			require.Equal(t, at[2], time.Since(p.started), "the last refusal comes back at once")
		})
	})
	t.Run("d 503", func(t *testing.T) {
		require.Equal(t, 10*sec, gateAfter(t, says(nil, http.StatusServiceUnavailable, "", "Retry-After: 10")))
	})
}

// Answers without any word about a limit leave the pace as it is.
//
// Sources: Colorfulstan/RiotRateLimiter-node#6, Shopify/shopify-api-ruby#61.
func TestCaseE12NoRateHeadersAtAll(t *testing.T) {
	for name, opts := range map[string][]transport.Option{
		"default":  nil,
		"adaptive": {transport.WithAdaptiveRate(0.1)},
		"github":   {transport.WithClassifier(feedback.GitHub)},
		"no header at all": {transport.WithClassifier(func(a *feedback.Answer) feedback.Verdict {
			return feedback.Default(a)
		})},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPartner()
				script(p,
					status(http.StatusForbidden),
					func(*http.Request) (*http.Response, error) { return nil, errors.New("connection reset by peer") },
					status(http.StatusOK, "X-RateLimit-Limit: abc"),
					func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: http.StatusOK}, nil },
				)
				tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)), opts...)
				for range 9 {
					_, _ = tr.RoundTrip(get(t, t.Context(), "/"))
				}
				require.Equal(t, steps(0, 100*ms, 9), times(p.seen()))
			})
		})
	}
}

// A partner for SMS that refuses in the body holds the line if its classifier is set, and
// the caller reads the whole body.
//
// Sources: Vonage/vonage-node-sdk#33,
// google/exposure-notifications-verification-server#1568, JustFixNYC/tenants2#2057,
// codeforamerica/vita-min#3401.
func TestCaseE14ThrottleToldInTheBody(t *testing.T) {
	const (
		throttled = `{"message-count":"1","messages":[{"status":"1","error-text":"Throughput Rate Exceeded - please wait [ 978 ] and retry"}]}`
		queueFull = `{"code":21611,"message":"This 'From' number has exceeded the maximum number of queued messages","status":400}`
		backoff   = -1
		interval  = 33333334 * time.Nanosecond // of 30/s, rounded up
	)
	for name, tc := range map[string]struct {
		classify feedback.Classifier
		status   int
		body     string
		want     time.Duration
	}{
		"throttled":           {feedback.Vonage, http.StatusOK, throttled, 978 * ms},
		"queue full":          {feedback.Twilio, http.StatusBadRequest, queueFull, backoff},
		"throttled, default":  {feedback.Default, http.StatusOK, throttled, interval},
		"queue full, default": {feedback.Default, http.StatusBadRequest, queueFull, interval},
		"throttled, without":  {nil, http.StatusOK, throttled, interval},
		"long body":           {feedback.Vonage, http.StatusOK, throttled + strings.Repeat(" ", 100_000), 978 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPartner()
				script(p, func(req *http.Request) (*http.Response, error) {
					return says(req, tc.status, tc.body, "Content-Type: application/json"), nil
				})
				tr := transport.New(p, newShaper(t, scheduler.PerSecond(30)), transport.WithClassifier(tc.classify))
				resp, err := tr.RoundTrip(get(t, t.Context(), "/"))
				require.NoError(t, err)
				require.Equal(t, tc.status, resp.StatusCode)
				got, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.Equal(t, tc.body, string(got))
				require.NoError(t, resp.Body.Close())

				_, err = tr.RoundTrip(get(t, t.Context(), "/"))
				require.NoError(t, err)
				at := p.seen()[1].at
				if tc.want == backoff {
					require.GreaterOrEqual(t, at, sec)
					require.LessOrEqual(t, at, 1250*ms)
					return
				}
				require.Equal(t, tc.want, at)
			})
		})
	}
}
