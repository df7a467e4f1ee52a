package feedback_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/transport/feedback"
)

func TestDefault(t *testing.T) {
	lines := func(lines ...string) []string { return lines }
	for name, tc := range map[string]struct {
		status int
		lines  []string
		want   feedback.Verdict
	}{
		"200":                            {200, nil, notRefused},
		"200 that used up the budget":    {200, lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 60"), spent(time.Minute)},
		"301 with Retry-After":           {301, lines("Retry-After: 60"), notRefused},
		"400 with Retry-After":           {400, lines("Retry-After: 60"), notRefused},
		"429":                            {429, nil, refused()},
		"429 with Retry-After":           {429, lines("Retry-After: 60"), refused(wait(time.Minute))},
		"429 above the cap":              {429, lines("Retry-After: 3601"), refused(capped)},
		"503":                            {503, nil, refused(trouble)},
		"503 with Retry-After":           {503, lines("Retry-After: 60"), refused(wait(time.Minute))},
		"403":                            {403, nil, notRefused},
		"403 with budget left":           {403, lines("X-RateLimit-Remaining: 7", "X-RateLimit-Reset: 60"), notRefused},
		"403 with Retry-After":           {403, lines("Retry-After: 60"), refused(wait(time.Minute))},
		"403 with Retry-After-Ms":        {403, lines("Retry-After-Ms: 60"), refused(wait(60 * time.Millisecond))},
		"403 with a malformed one":       {403, lines("Retry-After: soon"), notRefused},
		"403, budget used up":            {403, lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 60"), refused(wait(time.Minute))},
		"403, less than nothing left":    {403, lines("X-RateLimit-Remaining: -1"), refused()},
		"403, no reset":                  {403, lines("X-RateLimit-Remaining: 0"), refused()},
		"403, no valid reset":            {403, lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: -1"), refused()},
		"403, draft 10":                  {403, lines(`RateLimit: "a";r=0`), refused()},
		"403, draft 10 with budget left": {403, lines(`RateLimit: "a";r=1;t=5`), notRefused},
		"403, older fields":              {403, lines("RateLimit-Remaining: 0"), refused()},
		"403, one limit of several":      {403, lines("X-RateLimit-Remaining-Requests: 5", "X-RateLimit-Remaining-Tokens: 0"), refused()},
		"403, daily limit of HubSpot":    {403, lines("X-HubSpot-RateLimit-Daily-Remaining: 0"), refused()},
	} {
		t.Run(name, func(t *testing.T) {
			body := &scripted{}
			resp := respond(tc.status, "", tc.lines...)
			resp.Body = body
			assert.Equal(t, tc.want, feedback.Default(answer(resp)))
			assert.Zero(t, body.reads, "the body is not read")
			assert.Same(t, body, resp.Body)
		})
	}
}

// What a status says is one table: which answers are about a limit at all, and which are
// only if the partner states a time.
func TestStatedTimeByStatus(t *testing.T) {
	stated := map[int]bool{413: true, 418: true, 420: true, 425: true, 430: true, 500: true, 502: true, 504: true, 509: true, 529: true, 598: true}
	for status := 100; status < 600; status++ {
		bare := map[int]feedback.Verdict{429: refused(), 503: refused(trouble)}[status]
		may := stated[status] || status == 403 || bare.Refused
		assert.Equal(t, may, feedback.MayRefuse(status), status)
		assert.Equal(t, bare, feedback.Default(answer(respond(status, ""))), status)
		for _, lines := range [][]string{
			{"Retry-After: 60"},
			{"Retry-After: Tue, 14 Nov 2023 22:14:20 GMT"},
			{"Retry-After: Tue, 14 Nov 2023 22:14:20 +0000"},
			{"Retry-After-Ms: 60000"},
			{`RateLimit: "a";r=0;t=60`},
			{"RateLimit-Remaining: 0", "RateLimit-Reset: 60"},
			{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1700000060"},
		} {
			want := notRefused
			if may {
				want = refused(wait(time.Minute))
			} else if strings.Contains(lines[0], "Limit") {
				want = feedback.Verdict{Spent: true, Stated: true, Wait: time.Minute}
			}
			assert.Equal(t, want, feedback.Default(answer(respond(status, "", lines...))), "%d %v", status, lines)
		}
		for _, lines := range [][]string{
			{"Retry-After: soon"},
			{"X-RateLimit-Remaining: 7", "X-RateLimit-Reset: 60"},
		} {
			assert.Equal(t, bare, feedback.Default(answer(respond(status, "", lines...))), "%d %v", status, lines)
		}
	}
}

// On a 429 a reset is the time, also if no header counts what remains. A count that is there
// says more, and on any other status a reset alone is no reason to wait.
func TestResetWithoutCount(t *testing.T) {
	for name, tc := range map[string]struct {
		lines []string
		want  feedback.Verdict
	}{
		"delta":                         {[]string{"X-RateLimit-Reset: 60"}, refused(wait(time.Minute))},
		"epoch":                         {[]string{"X-RateLimit-Limit: 100", "X-RateLimit-Reset: 1700000060"}, refused(wait(time.Minute))},
		"past":                          {[]string{"X-RateLimit-Reset: 1699999990"}, refused(wait(0))},
		"above the cap":                 {[]string{"X-RateLimit-Reset: 7200"}, refused(capped)},
		"malformed":                     {[]string{"X-RateLimit-Reset: -1"}, refused()},
		"empty count":                   {[]string{"X-RateLimit-Remaining: ", "X-RateLimit-Reset: 60"}, refused(wait(time.Minute))},
		"a budget that lives":           {[]string{"X-RateLimit-Remaining: 1", "X-RateLimit-Reset: 60"}, refused()},
		"a count that is malformed":     {[]string{"X-RateLimit-Remaining: 1,000", "X-RateLimit-Reset: 60"}, refused()},
		"a count of another limit":      {[]string{"X-RateLimit-Remaining-Tokens: 5", "X-RateLimit-Reset-Tokens: 7", "X-RateLimit-Reset-Requests: 60"}, refused(wait(time.Minute))},
		"Retry-After wins":              {[]string{"Retry-After: 5", "X-RateLimit-Reset: 60"}, refused(wait(5 * time.Second))},
		"a used up one wins":            {[]string{"X-RateLimit-Remaining-Tokens: 0", "X-RateLimit-Reset-Tokens: 7", "X-RateLimit-Reset: 60"}, refused(wait(7 * time.Second))},
		"longest":                       {[]string{"X-RateLimit-Reset-Requests: 5", "X-RateLimit-Reset-Tokens: 60"}, refused(wait(time.Minute))},
		"other spelling":                {[]string{"X-Rate-Limit-Reset: 60"}, refused(wait(time.Minute))},
		"finer":                         {[]string{"X-RateLimit-Reset: 1700000001.5", "X-RateLimit-Reset-After: 0.503"}, refused(wait(503 * time.Millisecond))},
		"finer, malformed":              {[]string{"X-RateLimit-Reset: 1700000001.5", "X-RateLimit-Reset-After: x"}, refused(wait(1500 * time.Millisecond))},
		"Anthropic":                     {[]string{"anthropic-ratelimit-requests-reset: 2023-11-14T22:14:20Z"}, refused(wait(time.Minute))},
		"draft 10":                      {[]string{`RateLimit: "default";t=60`}, refused(wait(time.Minute))},
		"draft 10, one of two":          {[]string{`RateLimit: "a";r=5;t=90, "b";t=60`}, refused(wait(time.Minute))},
		"draft 10, r of no form":        {[]string{`RateLimit: "default";r="0";t=60`}, refused()},
		"draft 07":                      {[]string{"RateLimit: limit=100, reset=60"}, refused(wait(time.Minute))},
		"three fields":                  {[]string{"RateLimit-Limit: 100", "RateLimit-Reset: 60"}, refused(wait(time.Minute))},
		"draft wins":                    {[]string{"X-RateLimit-Reset: 90", "RateLimit-Reset: 60"}, refused(wait(time.Minute))},
		"a policy":                      {[]string{`RateLimit-Policy: "burst";q=100;w=60`}, refused()},
		"a name that only begins alike": {[]string{"X-RateLimit-Resetness: 60"}, refused()},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, feedback.Default(answer(respond(429, "", tc.lines...))))
		})
	}
	for _, status := range []int{200, 400, 403, 413, 500, 502} {
		assert.Equal(t, notRefused, feedback.Default(answer(respond(status, "", "X-RateLimit-Reset: 60"))), status)
	}
	assert.Equal(t, refused(trouble), feedback.Default(answer(respond(503, "", "X-RateLimit-Reset: 60"))))
}

func says(v feedback.Verdict, asked *int) feedback.Classifier {
	return func(*feedback.Answer) feedback.Verdict { *asked++; return v }
}

func TestAny(t *testing.T) {
	var first, second, third int
	one, two := refused(wait(time.Second)), refused(wait(2*time.Second), unprocessed)
	any := feedback.Any(nil, says(feedback.Verdict{Unprocessed: true}, &first), says(one, &second), says(two, &third))
	assert.Equal(t, one, any(answer(respond(200, ""))))
	assert.Equal(t, []int{1, 1, 0}, []int{first, second, third}, "the first that says Refused wins")

	assert.Equal(t, notRefused, feedback.Any()(answer(respond(429, ""))))
	assert.Equal(t, notRefused, feedback.Any(nil, says(feedback.Verdict{Unprocessed: true}, &first))(answer(respond(429, ""))))
}

func TestByHost(t *testing.T) {
	n := 0
	at := func(seconds int) feedback.Verdict { return refused(wait(time.Duration(seconds) * time.Second)) }
	classify := feedback.ByHost(map[string]feedback.Classifier{
		"api.example":      says(at(1), &n),
		"sms.api.example":  says(at(2), &n),
		"other.example":    says(at(3), &n),
		"10.0.0.1":         says(at(4), &n),
		"nothing.example":  nil,
		"com":              says(at(5), &n),
		"with.nil.example": nil,
	})
	for url, want := range map[string]feedback.Verdict{
		"https://api.example/v1":           at(1),
		"https://API.Example:8443/v1":      at(1),
		"https://api.example./v1":          at(1),
		"https://eu.api.example/":          at(1),
		"https://sms.api.example/":         at(2),
		"https://eu.sms.api.example/":      at(2),
		"http://other.example":             at(3),
		"http://10.0.0.1:80/":              at(4),
		"https://notapi.example/":          refused(),
		"https://api.example.org/":         refused(),
		"https://nothing.example/":         refused(),
		"https://api.example.evil.invalid": refused(),
		"https://a.b.c.com":                at(5),
		"/relative":                        refused(),
	} {
		t.Run(url, func(t *testing.T) {
			assert.Equal(t, want, classify(answer(to(url, respond(429, "")))))
		})
	}
	assert.Equal(t, refused(), classify(answer(respond(429, ""))), "no request")
	assert.Equal(t, refused(), classify(answer(&http.Response{StatusCode: 429, Request: &http.Request{}})), "no URL")
}

// The profile reaches the partner's Classifier behind it, and the body is read once.
func TestEpochRetryAfter(t *testing.T) {
	const body = `{"code":20429}`
	resp := respond(429, body, "Retry-After: 1700000060")
	a := answer(resp)
	assert.Equal(t, refused(wait(time.Minute), unprocessed), feedback.EpochRetryAfter(feedback.Twilio)(a))
	assert.Equal(t, body, string(a.Body()))
	assert.Equal(t, refused(capped, unprocessed), feedback.Twilio(a), "the Answer itself is as before")
}

func TestWithin(t *testing.T) {
	for name, tc := range map[string]struct {
		in   feedback.Verdict
		max  time.Duration
		want feedback.Verdict
	}{
		"nothing":                  {notRefused, hour, notRefused},
		"inside":                   {refused(wait(time.Minute), unprocessed), hour, refused(wait(time.Minute), unprocessed)},
		"the cap":                  {refused(wait(hour)), hour, refused(wait(hour))},
		"above":                    {refused(wait(hour + 1)), hour, refused(capped)},
		"negative":                 {refused(wait(-1)), hour, refused(wait(0))},
		"not stated":               {feedback.Verdict{Refused: true, Wait: time.Minute, Capped: true}, hour, refused()},
		"at least":                 {refused(atLeast(time.Minute), final), hour, refused(atLeast(time.Minute), final)},
		"at least more":            {refused(atLeast(hour + 1)), hour, refused(atLeast(hour))},
		"at least less":            {refused(atLeast(-1)), hour, refused()},
		"at least nothing":         {refused(atLeast(1)), -hour, refused()},
		"trouble":                  {refused(trouble), hour, refused(trouble)},
		"stated trouble":           {refused(wait(time.Second), trouble), hour, refused(wait(time.Second))},
		"stated and at least":      {refused(wait(time.Second), atLeast(time.Minute)), hour, refused(wait(time.Second))},
		"capped before":            {refused(capped), 2 * hour, refused(capped)},
		"nothing may be waited":    {refused(wait(1)), 0, feedback.Verdict{Refused: true, Stated: true, Capped: true}},
		"less than nothing may be": {refused(wait(1)), -hour, feedback.Verdict{Refused: true, Stated: true, Capped: true}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, tc.in.Within(tc.max))
		})
	}
}
