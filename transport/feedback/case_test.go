package feedback_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/transport/feedback"
)

// The cases from the field, as far as they are a matter of reading an answer.

// A date is measured against the partner's own clock, in each form that a recipient
// must accept, and one that is past is no wait, never a negative one.
//
// Sources: NousResearch/hermes-agent#84738, wisecom-oy/atlas#229,
// duolahypercho/codex-router#573, serokell/xrefcheck#99, openai/openai-java#878.
func TestCaseE03RetryAfterAsADate(t *testing.T) {
	const date = "Date: Tue, 14 Nov 2023 22:13:20 GMT"
	for name, tc := range map[string]struct {
		value string
		want  time.Duration
	}{
		"IMF-fixdate": {"Tue, 14 Nov 2023 22:15:20 GMT", 120 * time.Second},
		"RFC 850":     {"Tuesday, 14-Nov-23 22:15:20 GMT", 120 * time.Second},
		"asctime":     {"Tue Nov 14 22:15:20 2023", 120 * time.Second},
		"past":        {"Tue, 14 Nov 2023 22:12:50 GMT", 0},
	} {
		for skew, received := range map[string]time.Time{
			"clock right":        now,
			"clock 45 s ahead":   now.Add(45 * time.Second),
			"clock a year ahead": now.AddDate(1, 0, 0),
			"clock 45 s behind":  now.Add(-45 * time.Second),
		} {
			t.Run(name+"/"+skew, func(t *testing.T) {
				a := feedback.NewAnswer(respond(http.StatusTooManyRequests, "", date, "Retry-After: "+tc.value), received, hour)
				assert.Equal(t, refused(wait(tc.want)), feedback.Default(a))
			})
		}
	}
	t.Run("no Date and a clock ahead", func(t *testing.T) {
		got, _, ok := feedback.ReadHeaders(header("Retry-After: Tue, 14 Nov 2023 22:15:20 GMT"), now.Add(hour), hour)
		assert.True(t, ok)
		assert.Zero(t, got, "never negative")
	})
}

// No number makes the wait negative, immediate or shorter than it says.
//
// Sources: MONEI/Shopify-api-node#135, urllib3/urllib3#3743,
// hashicorp/go-retryablehttp#297, apify/crawlee-python#1995,
// pydantic/pydantic-ai#7073, ktorio/ktor#5347.
func TestCaseE04RetryAfterNumbersThatBreakParsers(t *testing.T) {
	for value, want := range map[string]feedback.Verdict{
		"120":                  refused(wait(120 * time.Second)),
		"0":                    refused(wait(0)),
		"-5":                   refused(),
		"2.0":                  refused(wait(2 * time.Second)),
		"2.5":                  refused(wait(2500 * time.Millisecond)),
		" 5 ":                  refused(wait(5 * time.Second)),
		"9999999999":           refused(capped),
		"9223372037":           refused(capped),
		"99999999999999999999": refused(capped),
		"soon":                 refused(),
		"":                     refused(),
	} {
		t.Run(value, func(t *testing.T) {
			got := feedback.Default(answer(respond(http.StatusTooManyRequests, "", "Retry-After: "+value)))
			assert.Equal(t, want, got)
		})
	}
}

// Epoch, delta and milliseconds are told apart.
//
// Sources: withcoral/coral#89, zalando/restful-api-guidelines#379,
// cloudfoundry/cloud_controller_ng#2544, RocketChat/docs-old#1358,
// pubg/api-documentation-content#61, utksh1/SecuScan#1838.
func TestCaseE05EpochDeltaOrMilliseconds(t *testing.T) {
	for name, tc := range map[string]struct {
		lines []string
		want  feedback.Verdict
	}{
		"epoch":               {[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1700000060"}, refused(wait(time.Minute))},
		"delta":               {[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 60"}, refused(wait(time.Minute))},
		"milliseconds":        {[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1700000060000"}, refused(wait(time.Minute))},
		"past epoch":          {[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1699999990"}, refused(wait(0))},
		"epoch Retry-After":   {[]string{"Retry-After: 1700000060"}, refused(capped)},
		"RateLimit-Reset":     {[]string{"RateLimit-Remaining: 0", "RateLimit-Reset: 60"}, refused(wait(time.Minute))},
		"a budget that lives": {[]string{"X-RateLimit-Remaining: 1", "X-RateLimit-Reset: 60"}, refused()},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, feedback.Default(answer(respond(http.StatusTooManyRequests, "", tc.lines...))))
		})
	}
	profile := feedback.EpochRetryAfter(nil)
	for value, want := range map[string]feedback.Verdict{
		"1700000060":    refused(wait(time.Minute)),
		"1700000060000": refused(wait(time.Minute)),
		"1699999990":    refused(wait(0)),
		"60":            refused(wait(time.Minute)),
		"1800000000":    refused(capped),
		"-1":            refused(),
	} {
		t.Run("vendor profile/"+value, func(t *testing.T) {
			assert.Equal(t, want, profile(answer(respond(http.StatusTooManyRequests, "", "Retry-After: "+value))))
		})
	}
}

// A refusal is known by more than a 429, and a 403 is not always one.
//
// Sources: agentconnect-md/agentconnect#1981, gofri/go-github-ratelimit#38,
// nozzlegear/ShopifySharp#350, Shopify/shopify-api-ruby#899,
// italia/publiccode-crawler#323.
func TestCaseE11ThrottlingThatDoesNotLookLikePlain429(t *testing.T) {
	for name, tc := range map[string]struct {
		resp *http.Response
		want feedback.Verdict
	}{
		"a 403 with budget left": {respond(403, "", "Retry-After: 60", "X-RateLimit-Remaining: 4114"), refused(wait(time.Minute))},
		"b plain 403":            {respond(403, ""), notRefused},
		"c 429 with budget left": {respond(429, "", "X-Shopify-Shop-Api-Call-Limit: 1/40"), refused()},
		"d 503":                  {respond(503, "", "Retry-After: 10"), refused(wait(10 * time.Second))},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, feedback.Default(answer(tc.resp)))
		})
	}
}

// Without any of the headers nothing breaks, and garbage in them is no refusal.
//
// Sources: Colorfulstan/RiotRateLimiter-node#6, Shopify/shopify-api-ruby#61.
func TestCaseE12NoRateHeadersAtAll(t *testing.T) {
	for name, classify := range classifiers {
		t.Run(name, func(t *testing.T) {
			for _, resp := range []*http.Response{
				respond(403, ""),
				respond(200, "", "X-RateLimit-Limit: abc", "X-RateLimit-Remaining: abc", "X-RateLimit-Reset: abc"),
				{StatusCode: 403},
				{StatusCode: 200},
			} {
				assert.Equal(t, notRefused, classify(answer(resp)))
			}
		})
	}
}

// A partner for SMS that throttles in a 200 is read with its Classifier, and passes
// untouched without it. The caller gets the whole body either way.
//
// Sources: Vonage/vonage-node-sdk#33,
// google/exposure-notifications-verification-server#1568, JustFixNYC/tenants2#2057,
// codeforamerica/vita-min#3401.
func TestCaseE14ThrottleToldInTheBody(t *testing.T) {
	const (
		throttled = `{"message-count":"1","messages":[{"status":"1","error-text":"Throughput Rate Exceeded - please wait [ 978 ] and retry"}]}`
		inWords   = `{"status":"throughput exceeded","error_text":"throughput exceeded, wait 978 ms"}`
		queueFull = `{"code":21611,"message":"This 'From' number has exceeded the maximum number of queued messages","status":400}`
	)
	for name, tc := range map[string]struct {
		classify feedback.Classifier
		status   int
		body     string
		want     feedback.Verdict
	}{
		"throttled":                     {feedback.Vonage, 200, throttled, refused(wait(978*time.Millisecond), unprocessed)},
		"throttled, in words":           {feedback.Vonage, 200, inWords, refused(wait(978*time.Millisecond), unprocessed)},
		"queue full":                    {feedback.Twilio, 400, queueFull, refused(unprocessed)},
		"throttled, without classifier": {feedback.Default, 200, throttled, notRefused},
		"queue full, without it":        {feedback.Default, 400, queueFull, notRefused},
	} {
		t.Run(name, func(t *testing.T) {
			resp := respond(tc.status, tc.body, "Content-Type: application/json")
			assert.Equal(t, tc.want, tc.classify(answer(resp)))
			rest, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			assert.Equal(t, tc.body, string(rest))
		})
	}
}

// A date is read in every form that names one instant, and is absent otherwise; what it is
// not is "now". A refusal out of a cache is never taken for one that ends earlier: its time
// counts from when it was received, as RFC 9110 has it, whatever its Age.
//
// Sources: docling-project/docling#3786, will-ockmore/httpx-retries#58,
// basecamp/basecamp-sdk#857, certbot/certbot#9319, denoland/std#7299,
// RestKit/RestKit#2337.
func TestCaseJ17FormsOfDates(t *testing.T) {
	const date = "Date: Tue, 14 Nov 2023 22:13:20 GMT"
	tenMinutes := refused(wait(10 * time.Minute))
	for value, want := range map[string]feedback.Verdict{
		"Tue, 14 Nov 2023 22:23:20 GMT":   tenMinutes,
		"Tuesday, 14-Nov-23 22:23:20 GMT": tenMinutes,
		"Tue Nov 14 22:23:20 2023":        tenMinutes,

		// What mail libraries of Python write, DATE_RFC1123 of PHP, and their like.
		"Tue, 14 Nov 2023 22:23:20 +0000":   tenMinutes,
		"Tue, 14 Nov 2023 22:23:20 -0000":   tenMinutes,
		"Tue, 14 Nov 2023 22:23:20 +00:00":  tenMinutes,
		"Wed, 15 Nov 2023 03:53:20 +0530":   tenMinutes,
		"Tue, 14 Nov 2023 14:23:20 -0800":   tenMinutes,
		"14 Nov 2023 22:23:20 +0000":        tenMinutes,
		"Tue, 14 Nov 23 22:23:20 +0000":     tenMinutes,
		"14 Nov 23 22:23:20 GMT":            tenMinutes,
		"Tuesday, 14-Nov-23 22:23:20 +0000": tenMinutes,
		"Tue, 14-Nov-2023 22:23:20 GMT":     tenMinutes,
		"Tue, 14 Nov 2023 22:23:20 UT":      tenMinutes,
		"2023-11-14 22:23:20 +0000":         tenMinutes,
		"2023-11-14 22:23:20 UTC":           tenMinutes,
		"2023-11-14 22:23:20+00:00":         tenMinutes,
		"2023-11-14 22:23:20Z":              tenMinutes,
		"2023-11-14 22:23:20":               tenMinutes,

		// A leap second is the one before the next minute.
		"Tue, 14 Nov 2023 22:22:60 GMT": refused(wait(580 * time.Second)),
		"2023-11-14T22:22:60Z":          refused(wait(580 * time.Second)),
		"Tue, 14 Nov 2023 22:22:61 GMT": refused(),

		// Local times that nothing places.
		"Tue, 14 Nov 2023 22:23:20":          refused(),
		"Tue, 14 Nov 2023 22:23:20 EST":      refused(),
		"Tue, 14 Nov 2023 22:23:20 PST":      refused(),
		"Tuesday, 14-Nov-23 22:23:20 CET":    refused(),
		"Tue, 14 Nov 2023 22:23:20 GMT+0530": refused(),
		"Tue, 14 Nov 2023 22:23:20 +2500":    refused(),
		"Tue, 14 Nov 2023 22:23:20 +05":      refused(),
		"2023-11-14T14:23:20":                refused(), // a local time of eight hours west

		"Tue, 31 Feb 2023 22:23:20 GMT": refused(),
		"Tue, 31 Nov 2023 22:23:20 GMT": refused(),
		"2023-02-31T22:23:20Z":          refused(),

		"Sunday, 06-Nov-94 08:49:37 GMT":   refused(wait(0)),
		"Sunday, 06-Nov-94 08:49:37 +0000": refused(wait(0)),
		"Saturday, 14-Nov-72 22:13:20 GMT": refused(capped),
	} {
		t.Run(value, func(t *testing.T) {
			assert.Equal(t, want, feedback.Default(answer(respond(429, "", date, "Retry-After: "+value))))
			assert.Equal(t, want.Wait, feedback.Default(answer(respond(429, "", date, "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: "+value))).Wait)
		})
	}
	t.Run("the partner's own clock in such a form", func(t *testing.T) {
		for _, date := range []string{"Tue, 14 Nov 2023 22:13:20 +0000", "Wed, 15 Nov 2023 03:43:20 +0530"} {
			a := feedback.NewAnswer(respond(429, "", "Date: "+date, "Retry-After: Tue, 14 Nov 2023 22:23:20 GMT"), now.Add(hour), hour)
			assert.Equal(t, tenMinutes, feedback.Default(a), date)
		}
	})
	t.Run("out of a cache", func(t *testing.T) {
		for _, value := range []string{"60", "Tue, 14 Nov 2023 22:14:20 GMT"} {
			a := feedback.NewAnswer(respond(429, "", date, "Age: 50", "Retry-After: "+value), now.Add(50*time.Second), hour)
			assert.Equal(t, refused(wait(time.Minute)), feedback.Default(a), value)
		}
	})
}
