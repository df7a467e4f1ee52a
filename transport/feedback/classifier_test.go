package feedback_test

import (
	"net/http"
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
		"200 that used up the budget":    {200, lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 60"), notRefused},
		"301 with Retry-After":           {301, lines("Retry-After: 60"), notRefused},
		"400 with Retry-After":           {400, lines("Retry-After: 60"), notRefused},
		"500 with Retry-After":           {500, lines("Retry-After: 60"), notRefused},
		"429":                            {429, nil, refused()},
		"429 with Retry-After":           {429, lines("Retry-After: 60"), refused(wait(time.Minute))},
		"429 above the cap":              {429, lines("Retry-After: 3601"), refused(capped)},
		"503":                            {503, nil, refused()},
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
