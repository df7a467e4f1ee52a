package feedback_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/transport/feedback"
)

// classifiers is each Classifier of the package.
var classifiers = map[string]feedback.Classifier{
	"Default":         feedback.Default,
	"Any":             feedback.Any(feedback.Default),
	"ByHost":          feedback.ByHost(nil),
	"EpochRetryAfter": feedback.EpochRetryAfter(nil),
	"Adyen":           feedback.Adyen,
	"Anthropic":       feedback.Anthropic,
	"AWS":             feedback.AWS,
	"Bird":            feedback.Bird,
	"GitHub":          feedback.GitHub,
	"Google":          feedback.Google,
	"OpenAI":          feedback.OpenAI,
	"Salesforce":      feedback.Salesforce,
	"Shopify":         feedback.Shopify,
	"Stripe":          feedback.Stripe,
	"Twilio":          feedback.Twilio,
	"Vonage":          feedback.Vonage,
}

// For every partner, what the standard says holds too.
func TestAllFallBackToDefault(t *testing.T) {
	for name, classify := range classifiers {
		t.Run(name, func(t *testing.T) {
			for _, status := range []int{429, 503} {
				v := classify(answer(respond(status, "", "Retry-After: 7")))
				v.Unprocessed = false
				assert.Equal(t, refused(wait(7*time.Second)), v, status)
			}
			assert.Equal(t, refused(wait(7*time.Second)), classify(answer(respond(403, "", "Retry-After: 7"))))
			for _, status := range []int{101, 200, 201, 204, 301, 400, 401, 402, 403, 404, 409, 422, 500, 502, 504} {
				for _, body := range unrelated {
					resp := respond(status, body, "Content-Type: application/json")
					assert.Equal(t, notRefused, classify(answer(resp)), "%d %s", status, body)
					if status >= 200 {
						rest, err := io.ReadAll(resp.Body)
						require.NoError(t, err)
						assert.Equal(t, body, string(rest))
					}
				}
			}
		})
	}
}

// unrelated are bodies that say nothing about a limit, some of them barely.
var unrelated = []string{
	``, `null`, `true`, `1`, `"1"`, `[]`, `{}`, `[[]]`, `[null]`, `{`, `{"`, "\x00\xff", `<html><body>Throttling</body></html>`,
	`<Error><Message>Throttling</Message></Error>`, `<Code>Throttling</Code>`, `</Error>`, `<Error><Code>`,
	`{"code":20003,"message":"Authenticate","status":401}`,
	`{"code":204290}`, `{"code":[20429]}`, `{"code":{"code":20429}}`, `{"error":{"code":20429}}`,
	`{"messages":[{"status":"0","message-id":"0A00000012345678"}]}`, `{"messages":[{"status":"11"}]}`, `{"messages":{"status":"1"}}`,
	`{"status":"throughput"}`, `{"messages":"1"}`,
	`{"error":{"code":"resource_missing","message":"No such charge; please wait [ 978 ]"}}`,
	`{"__type":"ValidationException","message":"Throttling"}`, `{"__type":"LimitExceededException"}`, `{"__type":"x#"}`, `{"__type":7}`,
	`{"status":500,"errorCode":"00_500","detail":"internal error"}`,
	`{"message":"Resource not accessible by integration"}`,
	`{"data":{"shop":{"name":"s"}},"extensions":{"cost":{"requestedQueryCost":101,"throttleStatus":{"currentlyAvailable":0,"restoreRate":50.0}}}}`,
	`{"errors":[{"message":"Field 'x' doesn't exist","extensions":{"code":"undefinedField"}}]}`,
	`{"errors":[{"type":"NOT_FOUND","message":"THROTTLED RATE_LIMITED"}]}`,
	`{"error":{"code":403,"status":"PERMISSION_DENIED","errors":[{"reason":"insufficientPermissions"}]}}`,
	`[{"errorCode":"INSUFFICIENT_ACCESS","message":"REQUEST_LIMIT_EXCEEDED"}]`,
}

func TestPartners(t *testing.T) {
	const (
		ms   = time.Millisecond
		s    = time.Second
		json = "Content-Type: application/json; charset=utf-8"
	)
	for _, group := range []struct {
		name     string
		classify feedback.Classifier
		cases    []partnerCase
	}{
		{"Stripe", feedback.Stripe, []partnerCase{
			{"limit", respond(429, `{"error":{"code":"rate_limit","type":"invalid_request_error"}}`, "Stripe-Rate-Limited-Reason: global-rate"), refused(ofAccount)},
			{"limit without reason", respond(429, `{"error":{"code":"rate_limit","type":"invalid_request_error"}}`), refused()},
			{"lock", respond(429, `{"error":{"code":"lock_timeout","type":"invalid_request_error"}}`, "Stripe-Should-Retry: true"), notRefused},
			{"lock that is a limit", respond(429, `{"error":{"code":"lock_timeout"}}`, "Stripe-Rate-Limited-Reason: resource-specific"), refused()},
			{"lock, cut off", respond(429, `{"error":{"code":"lock_timeout"`), refused()},
			{"limit, final", respond(429, `{"error":{"code":"rate_limit"}}`, "Stripe-Should-Retry: false"), refused(final)},
			{"limit with reason, final", respond(429, `{}`, "Stripe-Rate-Limited-Reason: global-rate", "Stripe-Should-Retry: false"), refused(ofAccount, final)},
			{"limit, not final", respond(429, `{}`, "Stripe-Should-Retry: true"), refused()},
			{"unavailable, final", respond(503, ``, "Stripe-Should-Retry: false"), refused(trouble, final)},
			{"lock, final", respond(429, `{"error":{"code":"lock_timeout"}}`, "Stripe-Should-Retry: false"), feedback.Verdict{Final: true}},
			{"card declined", respond(402, `{"error":{"code":"card_declined"}}`), notRefused},
			{"lock of another status", respond(409, `{"error":{"code":"lock_timeout"}}`), notRefused},
		}},
		{"Twilio", feedback.Twilio, []partnerCase{
			{"too many requests", respond(429, `{"code":20429,"message":"Too Many Requests","more_info":"https://www.twilio.com/docs/errors/20429","status":429}`), refused(unprocessed)},
			{"with a time", respond(429, `{"code":20429}`, "Retry-After: 2"), refused(wait(2*s), unprocessed)},
			{"code as text", respond(429, `{"code":"20429"}`), refused(unprocessed)},
			{"429 of something else", respond(429, `upstream busy`), refused()},
			{"queue full", respond(400, `{"code":21611,"status":400}`), refused(unprocessed)},
			{"queue full with a time", respond(400, `{"code":21611}`, "Retry-After: 9"), refused(wait(9*s), unprocessed)},
			{"queue full, 429", respond(429, `{"code":21611,"status":429}`, "Retry-After: 9"), refused(wait(9*s), unprocessed)},
			{"bad number", respond(400, `{"code":21211,"status":400}`), notRefused},
			{"code in an accepted message", respond(201, `{"code":20429}`), notRefused},
			{"unavailable", respond(503, `{"code":20429}`), refused(trouble)},
		}},
		{"Vonage", feedback.Vonage, []partnerCase{
			{"throttled", respond(200, `{"message-count":"1","messages":[{"status":"1","error-text":"Throughput Rate Exceeded - please wait [ 250 ] and retry"}]}`, json), refused(wait(250*ms), unprocessed)},
			{"no time", respond(200, `{"messages":[{"status":"1","error-text":"Throttled"}]}`, json), refused(unprocessed)},
			{"no text", respond(200, `{"messages":[{"status":"1"}]}`, json), refused(unprocessed)},
			{"huge time", respond(200, `{"messages":[{"status":"1","error-text":"wait [ 99999999999999999999999 ]"}]}`, json), refused(capped, unprocessed)},
			{"time in another unit", respond(200, `{"messages":[{"status":"1","error-text":"wait 2 seconds"}]}`, json), refused(unprocessed)},
			{"time without a unit", respond(200, `{"messages":[{"status":"1","error-text":"wait 2"}]}`, json), refused(unprocessed)},
			{"negative time", respond(200, `{"messages":[{"status":"1","error-text":"wait [ -2 ]"}]}`, json), refused(unprocessed)},
			{"status as a number", respond(200, `{"status":1,"error-text":"Back off"}`, json), refused(unprocessed)},
			{"no error", respond(200, `{"status":1,"id":"created"}`, json), notRefused},
			{"no error, as text", respond(200, `{"status":"1","error_text":""}`, json), notRefused},
			{"no error, in words", respond(200, `{"status":"throughput exceeded"}`, json), notRefused},
			{"no messages", respond(200, `{"status":"1","messages":[]}`, json), notRefused},
			{"Verify", respond(200, `{"request_id":"","status":"1","error_text":"Throttled"}`, json), refused(unprocessed)},
			{"some parts accepted", respond(200, `{"message-count":"3","messages":[{"status":"0"},{"status":"1","error-text":"wait [ 100 ] and"},{"status":"1","error-text":"wait [ 300 ] and"}]}`, json), refused(wait(300 * ms))},
			{"longest first", respond(200, `{"messages":[{"status":"1","error-text":"wait [ 300 ]"},{"status":"1","error-text":"wait [ 100 ]"}]}`, json), refused(wait(300*ms), unprocessed)},
			{"header and text", respond(200, `{"messages":[{"status":"1","error-text":"wait [ 100 ]"}]}`, json, "Retry-After: 2"), refused(wait(2*s), unprocessed)},
			{"accepted", respond(200, `{"message-count":"1","messages":[{"status":"0","remaining-balance":"1"}]}`, json), notRefused},
			{"no money", respond(200, `{"messages":[{"status":"9","error-text":"Partner quota exceeded"}]}`, json), notRefused},
			{"cut off", respond(200, `{"messages":[{"status":"1","error-text":"Throu`, json), notRefused},
			{"two documents", respond(200, `{"status":"1","error_text":"Throttled"}{"status":"0"}`, json), notRefused},
			{"document and rest", respond(200, `{"status":"1","error_text":"Throttled"}<html>`, json), notRefused},
			{"white space at the end", respond(200, `{"status":"1","error_text":"Throttled"}`+" \r\n", json), refused(unprocessed)},
			{"not JSON", respond(200, `{"status":"1","error_text":"Throttled"}`, "Content-Type: text/plain"), notRefused},
			{"a kind of JSON", respond(200, `{"status":"1","error_text":"Throttled"}`, "Content-Type: Application/Vnd.Api+JSON ;v=1"), refused(unprocessed)},
			{"no type", respond(200, `{"status":"1","error_text":"Throttled"}`), notRefused},
			{"newer service", respond(429, `{"title":"Rate Limit Hit"}`, json), refused()},
			{"another status", respond(401, `{"status":"1"}`, json), notRefused},
		}},
		{"Bird", feedback.Bird, []partnerCase{
			{"429", respond(429, ``), refused(unprocessed)},
			{"503", respond(503, ``), refused(trouble)},
			{"422", respond(422, `{"errors":[{"code":9}]}`), notRefused},
		}},
		{"Adyen", feedback.Adyen, []partnerCase{
			{"limit", respond(500, `{"type":"https://docs.adyen.com/errors/internal","status":500,"errorCode":"00_500","detail":"too many requests"}`), refused()},
			{"capitals", respond(500, `{"detail":"Too Many Requests"}`), refused()},
			{"message", respond(500, `{"message":"Too many requests"}`), refused()},
			{"with a time", respond(500, `{"detail":"too many requests"}`, "Retry-After: 3"), refused(wait(3 * s))},
			{"internal error", respond(500, `{"detail":"internal error"}`), notRefused},
			{"cut off", respond(500, `{"detail":"too many requests`), notRefused},
			{"in a field of the payment", respond(500, `{"detail":"internal error","reference":"too many requests"}`), notRefused},
			{"another status", respond(422, `{"detail":"too many requests"}`), notRefused},
		}},
		{"AWS", feedback.AWS, []partnerCase{
			{"SNS", respond(400, `<?xml version="1.0"?><ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><Error><Type>Sender</Type><Code>Throttling</Code><Message>Rate exceeded</Message></Error></ErrorResponse>`, "Content-Type: text/xml"), refused(unprocessed)},
			{"SNS, of the account", respond(429, `<ErrorResponse><Error><Type>Sender</Type><Code>Throttled</Code><Message>Rate exceeded</Message></Error></ErrorResponse>`), refused(unprocessed)},
			{"SNS, of KMS", respond(400, `<ErrorResponse><Error><Type>Sender</Type><Code>KMSThrottling</Code></Error></ErrorResponse>`), refused()},
			{"JSON, of KMS", respond(400, `{"__type":"KMSThrottlingException"}`), refused()},
			{"Route 53", respond(400, `<ErrorResponse><Error><Code>PriorRequestNotComplete</Code></Error></ErrorResponse>`), refused(unprocessed)},
			{"second code", respond(400, `{"__type":"x","code":"ThrottlingException"}`), refused(unprocessed)},
			{"JSON", respond(400, `{"__type":"com.amazonaws.pinpoint#ThrottlingException","Message":"Rate exceeded"}`), refused(unprocessed)},
			{"JSON without namespace", respond(400, `{"__type":"ThrottlingException"}`), refused(unprocessed)},
			{"code", respond(400, `{"code":"RequestThrottled"}`), refused(unprocessed)},
			{"header", respond(400, `{"message":"Rate exceeded"}`, "x-amzn-ErrorType: ThrottlingException:http://internal.amazon.com/coral/"), refused(unprocessed)},
			{"header wins over the body", respond(400, `{"__type":"ThrottlingException"}`, "x-amzn-ErrorType: ValidationException"), notRefused},
			{"with a time", respond(400, `{"__type":"ThrottlingException"}`, "x-amz-retry-after: 1500"), refused(wait(1500*ms), unprocessed)},
			{"429", respond(429, `{"__type":"TooManyRequestsException"}`), refused(unprocessed)},
			{"429 of something else", respond(429, `{"__type":"ServiceQuotaExceededException"}`), refused()},
			{"S3", respond(503, `<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>`), refused()},
			{"EC2", respond(503, `<Response><Errors><Error><Code>RequestLimitExceeded</Code></Error></Errors></Response>`), refused()},
			{"500", respond(500, `{"__type":"ThrottlingException"}`), refused()},
			{"XML cut off behind the code", respond(400, `<ErrorResponse><Error><Code>Throttling</Code><Mess`), refused(unprocessed)},
			{"XML cut off within the code", respond(400, `<ErrorResponse><Error><Code>Throttl`), notRefused},
			{"code outside of an error", respond(400, `<Error><Code>InvalidParameter</Code><Detail><Code>Throttling</Code></Detail></Error>`), notRefused},
			{"code of something else", respond(400, `<Response><Detail><Code>Throttling</Code></Detail></Response>`), notRefused},
			{"JSON cut off", respond(400, `{"__type":"ThrottlingException"`), notRefused},
			{"validation", respond(400, `{"__type":"com.amazonaws.sns#InvalidParameterException","message":"ThrottlingException"}`), notRefused},
			{"an account's quota", respond(400, `{"__type":"LimitExceededException"}`), notRefused},
			{"not an error", respond(200, `{"__type":"ThrottlingException"}`), notRefused},
		}},
		{"GitHub", feedback.GitHub, []partnerCase{
			{"primary", respond(403, `{"message":"API rate limit exceeded"}`, "x-ratelimit-remaining: 0", "x-ratelimit-reset: 1700000060"), refused(wait(60 * s))},
			{"primary, 429", respond(429, ``, "x-ratelimit-remaining: 0", "x-ratelimit-reset: 1700000090"), refused(wait(90 * s))},
			{"secondary with a time", respond(403, `{"message":"You have exceeded a secondary rate limit."}`, "Retry-After: 17", "x-ratelimit-remaining: 4114"), refused(wait(17 * s))},
			{"secondary without", respond(403, `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}`, "x-ratelimit-remaining: 4114", "x-ratelimit-reset: 1700003000"), refused(atLeast(60 * s))},
			{"secondary, former name", respond(403, `{"message":"You have triggered an abuse detection mechanism."}`), refused(atLeast(60 * s))},
			{"secondary, 429", respond(429, `{"message":"You have exceeded a secondary rate limit."}`, "x-ratelimit-remaining: 4114"), refused(atLeast(60 * s))},
			{"used up without a reset", respond(403, ``, "x-ratelimit-remaining: 0"), refused(atLeast(60 * s))},
			{"permission", respond(403, `{"message":"Resource not accessible by integration"}`, "x-ratelimit-remaining: 4114", "x-ratelimit-reset: 1700003000"), notRefused},
			{"secondary, cut off", respond(403, `{"message":"You have exceeded a secondary rate limit`), notRefused},
			{"unavailable", respond(503, ``), refused(trouble)},
			{"GraphQL", to("https://api.github.com/graphql", respond(200, `{"errors":[{"type":"RATE_LIMITED","message":"API rate limit exceeded"}]}`, json, "x-ratelimit-remaining: 0", "x-ratelimit-reset: 1700000060")), refused(wait(60 * s))},
			{"GraphQL, secondary", to("https://api.github.com/graphql", respond(200, `{"errors":[{"message":"You have exceeded a secondary rate limit"}]}`, json)), refused(atLeast(60 * s))},
			{"GraphQL, another error", to("https://api.github.com/graphql", respond(200, `{"errors":[{"type":"NOT_FOUND"}]}`, json, "x-ratelimit-remaining: 0")), notRefused},
			{"GraphQL, last of the budget", to("https://api.github.com/graphql", respond(200, `{"data":{}}`, json, "x-ratelimit-remaining: 0", "x-ratelimit-reset: 1700000060")), spent(60 * s)},
			{"REST with such a body", to("https://api.github.com/repos", respond(200, `{"errors":[{"type":"RATE_LIMITED"}]}`, json)), notRefused},
		}},
		{"Shopify", feedback.Shopify, []partnerCase{
			{"REST", respond(429, `{"errors":"Exceeded 2 calls per second for api client."}`, "Retry-After: 2.0", "X-Shopify-Shop-Api-Call-Limit: 40/40"), refused(wait(2 * s))},
			{"REST with room", respond(429, ``, "X-Shopify-Shop-Api-Call-Limit: 1/40"), refused()},
			{"GraphQL", to("https://s.myshopify.com/admin/api/2026-07/graphql.json", respond(200, throttledQuery(`202`, `118.5`, `50.0`), json)), refused(wait(1670*ms), unprocessed)},
			{"GraphQL, rounded up", respond(200, throttledQuery(`10`, `9`, `3.0`), json), refused(wait(333_333_334), unprocessed)},
			{"GraphQL, enough by now", respond(200, throttledQuery(`10`, `10.0`, `3.0`), json), refused(wait(0), unprocessed)},
			{"GraphQL, more than enough by now", respond(200, throttledQuery(`9`, `10.0`, `3.0`), json), refused(wait(0), unprocessed)},
			{"GraphQL, slow", respond(200, throttledQuery(`1000`, `0`, `0.01`), json), refused(capped, unprocessed)},
			{"GraphQL, absurd", respond(200, throttledQuery(`99999999999999999999`, `0`, `0.000000001`), json), refused(capped, unprocessed)},
			{"GraphQL, no rate", respond(200, throttledQuery(`10`, `9`, `0`), json), refused(unprocessed)},
			{"GraphQL, negative", respond(200, throttledQuery(`10`, `-9`, `1`), json), refused(unprocessed)},
			{"GraphQL, exponent", respond(200, throttledQuery(`1e999999999`, `9`, `1`), json), refused(unprocessed)},
			{"GraphQL, no cost", respond(200, `{"errors":[{"extensions":{"code":"THROTTLED"}}]}`, json), refused(unprocessed)},
			{"GraphQL, with data", respond(200, `{"data":{"a":1},"errors":[{"extensions":{"code":"THROTTLED"}}]}`, json), refused()},
			{"GraphQL, second error", respond(200, `{"errors":[{},{"extensions":{"code":"THROTTLED"}}]}`, json), refused(unprocessed)},
			{"GraphQL, too expensive", respond(200, `{"errors":[{"extensions":{"code":"MAX_COST_EXCEEDED"}}]}`, json), notRefused},
			{"GraphQL, cut off", respond(200, `{"errors":[{"extensions":{"code":"THROTTLED"}}]`, json), notRefused},
			{"REST with such a body", to("https://s.myshopify.com/admin/api/2026-07/orders.json", respond(200, throttledQuery(`2`, `1`, `1`), json)), notRefused},
		}},
		{"Google", feedback.Google, []partnerCase{
			{"user", respond(403, `{"error":{"code":403,"errors":[{"domain":"usageLimits","reason":"userRateLimitExceeded"}]}}`), refused()},
			{"project", respond(403, `{"error":{"errors":[{"reason":"rateLimitExceeded"}]}}`), refused()},
			{"second reason", respond(403, `{"error":{"errors":[{"reason":"x"},{"reason":"quotaExceeded"}]}}`), refused()},
			{"ErrorInfo", respond(403, `{"error":{"status":"PERMISSION_DENIED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMIT_EXCEEDED"}]}}`), refused()},
			{"with a time", respond(429, `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"12.5s"}]}}`), refused(wait(12500 * ms))},
			{"403 with a time", respond(403, `{"error":{"status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"7s"}]}}`), refused(wait(7 * s))},
			{"503 with a time", respond(503, `{"error":{"details":[{"retryDelay":"7s"}]}}`), refused(wait(7 * s))},
			{"503 with a limit", respond(503, `{"error":{"status":"RESOURCE_EXHAUSTED"}}`), refused()},
			{"503", respond(503, `{"error":{"status":"UNAVAILABLE"}}`), refused(trouble)},
			{"stream", respond(429, `[{"error":{"details":[{"retryDelay":"7s"}]}}]`), refused(wait(7 * s))},
			{"header wins", respond(429, `{"error":{"details":[{"retryDelay":"7s"}]}}`, "Retry-After: 9"), refused(wait(9 * s))},
			{"malformed time", respond(429, `{"error":{"details":[{"retryDelay":"-7s"}]}}`), refused()},
			{"time above the cap", respond(429, `{"error":{"details":[{"retryDelay":"86400s"}]}}`), refused(capped)},
			{"permission", respond(403, `{"error":{"status":"PERMISSION_DENIED","errors":[{"reason":"forbidden"}],"details":[{"retryDelay":"7s"}]}}`), notRefused},
			{"cut off", respond(403, `{"error":{"errors":[{"reason":"rateLimitExceeded"}]`), notRefused},
			{"400", respond(400, `{"error":{"errors":[{"reason":"rateLimitExceeded"}]}}`), notRefused},
		}},
		{"Salesforce", feedback.Salesforce, []partnerCase{
			{"limit", respond(403, `[{"message":"TotalRequests Limit exceeded.","errorCode":"REQUEST_LIMIT_EXCEEDED"}]`, "Sforce-Limit-Info: api-usage=15000/15000"), refused()},
			{"body alone", respond(403, `[{"errorCode":"REQUEST_LIMIT_EXCEEDED"}]`), refused()},
			{"object", respond(403, `{"errorCode":"REQUEST_LIMIT_EXCEEDED"}`), refused()},
			{"header alone", respond(403, ``, "Sforce-Limit-Info: api-usage=15001/15000"), refused()},
			{"header with applications", respond(403, ``, "Sforce-Limit-Info: api-usage=25/5000; per-app-api-usage=17/17(appName=sample)"), notRefused},
			{"header with applications, used up", respond(403, ``, "Sforce-Limit-Info: api-usage=5000/5000; per-app-api-usage=1/250(appName=sample)"), refused()},
			{"permission at the limit", respond(403, `[{"errorCode":"INSUFFICIENT_ACCESS"}]`, "Sforce-Limit-Info: api-usage=15000/15000"), notRefused},
			{"permission", respond(403, `[{"errorCode":"INSUFFICIENT_ACCESS"}]`, "Sforce-Limit-Info: api-usage=18/15000"), notRefused},
			{"header that is malformed", respond(403, ``, "Sforce-Limit-Info: api-usage=0/0, api-usage=x/1, api-usage=5, usage=9/1"), notRefused},
			{"success at the limit", respond(200, `[]`, "Sforce-Limit-Info: api-usage=15000/15000"), notRefused},
			{"another status", respond(400, `[{"errorCode":"REQUEST_LIMIT_EXCEEDED"}]`), notRefused},
		}},
		{"OpenAI", feedback.OpenAI, []partnerCase{
			{"requests", respond(429, `{"error":{"code":"rate_limit_exceeded","message":"Please try again in 99s."}}`, "x-ratelimit-remaining-requests: 0", "x-ratelimit-reset-requests: 12ms"), refused(wait(12 * ms))},
			{"tokens that do not suffice", respond(429, `{"error":{"code":"rate_limit_exceeded","message":"Limit 10000, Used 9990, Requested 20. Please try again in 1m0.5s. Visit https://platform.openai.com"}}`, "x-ratelimit-remaining-tokens: 10", "x-ratelimit-reset-tokens: 59s"), refused(wait(60500 * ms))},
			{"end of the sentence", respond(429, `{"error":{"message":"Please try again in 20s."}}`), refused(wait(20 * s))},
			{"no time", respond(429, `{"error":{"message":"Please try again in a while."}}`), refused()},
			{"unit apart", respond(429, `{"error":{"message":"Please try again in 20 s. Visit 30 s"}}`), refused(wait(20 * s))},
			{"in words", respond(429, `{"error":{"message":"Please try again in 1 minute"}}`), refused(wait(60 * s))},
			{"in several words", respond(429, `{"error":{"message":"Please try again in 1 minute and 30.5 seconds. Thanks"}}`), refused(wait(90500 * ms))},
			{"hours and minutes", respond(429, `{"error":{"message":"Please try again in 2m, 3 seconds!"}}`), refused(wait(123 * s))},
			{"joined", respond(429, `{"error":{"message":"Please try again in 1m30s"}}`), refused(wait(90 * s))},
			{"number without a unit", respond(429, `{"error":{"message":"Please try again in 20."}}`), refused()},
			{"second number without a unit", respond(429, `{"error":{"message":"Please try again in 1 minute 30"}}`), refused()},
			{"unknown unit", respond(429, `{"error":{"message":"Please try again in 2 weeks"}}`), refused()},
			{"time above the cap", respond(429, `{"error":{"message":"Please try again in 7h12m0s."}}`), refused(capped)},
			{"no money", respond(429, `{"error":{"code":"insufficient_quota","type":"insufficient_quota"}}`, "Retry-After: 5"), notRefused},
			{"overloaded", respond(503, `{"error":{"message":"Please try again in 20s."}}`), refused(trouble)},
			{"bad request", respond(400, `{"error":{"message":"Please try again in 20s."}}`), notRefused},
		}},
		{"Anthropic", feedback.Anthropic, []partnerCase{
			{"limit", respond(429, `{"type":"error","error":{"type":"rate_limit_error"}}`, "anthropic-ratelimit-requests-remaining: 0", "anthropic-ratelimit-requests-reset: 2023-11-14T22:13:50Z"), refused(wait(30 * s))},
			{"overloaded", respond(529, `{"type":"error","error":{"type":"overloaded_error"}}`), refused(trouble)},
			{"overloaded with a time", respond(529, ``, "Retry-After: 4"), refused(wait(4 * s))},
			{"internal error", respond(500, `{"type":"error","error":{"type":"api_error"}}`), notRefused},
		}},
	} {
		for _, tc := range group.cases {
			t.Run(group.name+"/"+tc.name, func(t *testing.T) {
				body, err := io.ReadAll(tc.resp.Body)
				require.NoError(t, err)
				closed := 0
				tc.resp.Body = &counted{Reader: strings.NewReader(string(body)), closed: &closed}

				assert.Equal(t, tc.want, group.classify(answer(tc.resp)))

				rest, err := io.ReadAll(tc.resp.Body)
				require.NoError(t, err)
				assert.Equal(t, string(body), string(rest), "the caller gets the whole body")
				assert.Zero(t, closed)
				require.NoError(t, tc.resp.Body.Close())
				assert.Equal(t, 1, closed)
			})
		}
	}
}

type partnerCase struct {
	name string
	resp *http.Response
	want feedback.Verdict
}

type counted struct {
	io.Reader
	closed *int
}

func (c *counted) Close() error { *c.closed++; return nil }

func throttledQuery(requested, available, rate string) string {
	return `{"errors":[{"message":"Throttled","extensions":{"code":"THROTTLED"}}],"extensions":{"cost":{"requestedQueryCost":` + requested +
		`,"actualQueryCost":null,"throttleStatus":{"maximumAvailable":1000.0,"currentlyAvailable":` + available + `,"restoreRate":` + rate + `}}}}`
}

// A successful answer may be a stream without end: only what can be a refusal is
// waited for.
func TestStreamsAreNotWaitedFor(t *testing.T) {
	for name, classify := range classifiers {
		t.Run(name, func(t *testing.T) {
			for _, resp := range []*http.Response{
				respond(200, "", "Content-Type: text/event-stream"),
				respond(206, "", "Content-Type: application/json"),
				respond(200, ""),
				respond(200, "", "Content-Type: application/x-ndjson"),
				respond(200, "", "Content-Type: application/json-seq"),
				respond(200, "", "Content-Type: application/geo+json-seq"),
				respond(200, "", "Content-Type: application/jsonl; charset=utf-8"),
				respond(200, "", "Content-Type: application/stream+json"),
				respond(200, "", "Content-Type: application/vnd.x-stream+json"),
				respond(101, ""),
				respond(302, ""),
			} {
				body := &scripted{}
				resp.Body = body
				classify(answer(resp))
				assert.Zero(t, body.reads)
				assert.Same(t, body, resp.Body)
			}
		})
	}
}
