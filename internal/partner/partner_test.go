package partner_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/partner"
)

func TestNewNamesBadValues(t *testing.T) {
	good := partner.Limit{Units: 10, Window: time.Second}
	limit := func(change func(*partner.Limit)) partner.Endpoint {
		l := good
		change(&l)
		return partner.Endpoint{Limit: l}
	}
	for _, tt := range []struct {
		endpoint partner.Endpoint
		want     string
	}{
		{limit(func(l *partner.Limit) { l.Window = 0 }), "window 0s: must be positive"},
		{limit(func(l *partner.Limit) { l.Window = -1 }), "window -1ns: must be positive"},
		{limit(func(l *partner.Limit) { l.Units = 0 }), "units 0: must be positive"},
		{limit(func(l *partner.Limit) { l.Units = -3 }), "units -3: must be positive"},
		{limit(func(l *partner.Limit) { l.Slack = -1 }), "slack -1ns: must not be negative"},
		{limit(func(l *partner.Limit) { l.Slack = l.Window }), "slack 1s: must be less than 1s"},
		{limit(func(l *partner.Limit) { l.Slack, l.Even = l.Window/10, true }), "slack 100ms: must be less than 100ms"},
		{partner.Endpoint{Concurrency: -1}, "concurrency -1: must be positive"},
		{partner.Endpoint{Latency: -time.Second}, "latency -1s: must not be negative"},
		{limit(func(l *partner.Limit) { l.By = "x" }), `rule "x": must be one of ["token-bucket" "leaky-bucket" "fixed-window" "sliding-log" "sliding-counter" "gcra"]`},
		{limit(func(l *partner.Limit) { l.By, l.Even = partner.GCRA, true }), `rule "gcra": must not be even too`},
		{limit(func(l *partner.Limit) { l.Burst = 2 }), "burst 2: only token-bucket, leaky-bucket and gcra have one"},
		{limit(func(l *partner.Limit) { l.By, l.Burst = partner.TokenBucket, -2 }), "scheduler: burst -2: must be from 1 to 2^60"},
		{limit(func(l *partner.Limit) { l.By, l.Slack = partner.GCRA, l.Window/10 }), "slack 100ms: must be less than 100ms"},
		{partner.Endpoint{Misbehave: partner.Mood{Slow: -1}}, "slow -1ns: must not be negative"},
		{partner.Endpoint{Misbehave: partner.Mood{Pad: 1<<20 + 1}}, "pad 1048577: must be from 0 to 1048576"},
		{partner.Endpoint{Misbehave: partner.Mood{Refusal: "x"}}, `refusal "x": must be one of ["429" "503" "403" "500" "400" "200"]`},
	} {
		_, err := partner.New(partner.Config{SMS: tt.endpoint})
		assert.EqualError(t, err, "partner: sms: "+tt.want)
		_, err = partner.New(partner.Config{Payments: tt.endpoint})
		assert.EqualError(t, err, "partner: payments: "+tt.want)
	}
	for _, keys := range []int{-1, 1_000_001} {
		_, err := partner.New(partner.Config{Keys: keys})
		assert.EqualError(t, err, fmt.Sprintf("partner: keys %d: must be from 1 to 1000000", keys))
	}
	for _, tt := range []struct {
		config partner.Config
		want   string
	}{
		{partner.Config{SMS: partner.Endpoint{Key: "x"}}, `sms: key "x": must be one of ["" "sender" "host"]`},
		{partner.Config{Payments: partner.Endpoint{Key: partner.BySender}}, `payments: key "sender": must be one of ["" "host"]`},
		{partner.Config{Window: -1}, "window -1ns: must not be negative"},
		{partner.Config{Breaks: map[partner.Break]int{"x": 1}}, `break "x": must be one of ["idle-close" "hang-up" "goaway" "refused-stream"]`},
	} {
		_, err := partner.New(tt.config)
		assert.EqualError(t, err, "partner: "+tt.want)
	}
	_, err := partner.New(partner.Config{SMS: partner.Endpoint{Misbehave: partner.Mood{Hint: "x"}}})
	assert.ErrorContains(t, err, `partner: sms: hint "x": must be one of ["none" "retry-after-seconds"`)

	for _, e := range []partner.Endpoint{
		limit(func(l *partner.Limit) { l.Slack = l.Window - 1 }),
		limit(func(l *partner.Limit) { l.Slack, l.Even = l.Window/10-1, true }),
	} {
		_, err := partner.New(partner.Config{SMS: e, Payments: e})
		assert.NoError(t, err)
	}
}

// What is not a call gets the right status, is counted as such, costs nothing, and
// is not repeated in the answer.
func TestBadRequests(t *testing.T) {
	const (
		sms     = "/v1/messages"
		payment = "/v1/payments"
		secret  = "hunter2"
	)
	padded := func(size int) string {
		body := `{"to":"1","amount":1,"currency":"EUR","from":""}`
		return strings.Replace(body, `"from":"`, `"from":"`+strings.Repeat("x", size-len(body)), 1)
	}
	withType := func(contentType string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Content-Type", contentType) }
	}
	withKeys := func(keys ...string) func(*http.Request) {
		return func(r *http.Request) { r.Header["Idempotency-Key"] = keys }
	}
	valid := padded(64 << 10)

	for _, tt := range []struct {
		name   string
		path   string
		method string
		body   string
		change func(*http.Request)
		want   int
	}{
		{"get", sms, "GET", valid, nil, 405},
		{"put", sms, "PUT", valid, nil, 405},
		{"get", payment, "GET", valid, nil, 405},
		{"delete", payment, "DELETE", valid, nil, 405},

		{"no content type", sms, "POST", valid, withType(""), 415},
		{"form", sms, "POST", "to=hunter2", withType("application/x-www-form-urlencoded"), 415},
		{"bad content type", payment, "POST", valid, withType("application/json; hunter2"), 415},
		{"problem", payment, "POST", valid, withType("application/problem+json"), 415},

		{"one byte too long", sms, "POST", padded(64<<10 + 1), nil, 413},
		{"one byte too long", payment, "POST", padded(64<<10 + 1), nil, 413},

		{"no body", sms, "POST", "", nil, 400},
		{"not JSON", sms, "POST", "hunter2", nil, 400},
		{"cut off", sms, "POST", `{"to":"hunter2`, nil, 400},
		{"two documents", sms, "POST", `{"to":"1"}{"to":"hunter2"}`, nil, 400},
		{"array", sms, "POST", `["hunter2"]`, nil, 400},
		{"number for text", sms, "POST", `{"to":491510}`, nil, 400},
		{"text for number", payment, "POST", `{"amount":"hunter2","currency":"EUR"}`, nil, 400},
		{"fraction", payment, "POST", `{"amount":12.5,"currency":"EUR"}`, nil, 400},
		{"overflow", payment, "POST", `{"amount":9223372036854775808,"currency":"EUR"}`, nil, 400},
		{"no key", payment, "POST", valid, withKeys(), 400},
		{"empty key", payment, "POST", valid, withKeys(""), 400},
		{"two keys", payment, "POST", valid, withKeys(secret, secret), 400},
		{"long key", payment, "POST", valid, withKeys(strings.Repeat("k", 256)), 400},

		{"null", sms, "POST", `null`, nil, 422},
		{"no to", sms, "POST", `{"from":"hunter2","text":"hunter2"}`, nil, 422},
		{"empty to", sms, "POST", `{"to":""}`, nil, 422},
		{"too many parts", sms, "POST", `{"to":"1","text":"` + strings.Repeat("hunter2 ", 192) + `"}`, nil, 422},
		{"no amount", payment, "POST", `{"currency":"EUR"}`, nil, 422},
		{"nothing", payment, "POST", `{"amount":0,"currency":"EUR"}`, nil, 422},
		{"negative", payment, "POST", `{"amount":-1,"currency":"EUR"}`, nil, 422},
		{"no currency", payment, "POST", `{"amount":1}`, nil, 422},
		{"small letters", payment, "POST", `{"amount":1,"currency":"eur"}`, nil, 422},
		{"long currency", payment, "POST", `{"amount":1,"currency":"hunter2"}`, nil, 422},
	} {
		t.Run(fmt.Sprint(tt.path, " ", tt.want, " ", tt.name), func(t *testing.T) {
			p := newPartner(t, partner.Config{})
			r := newRequest(t, tt.method, tt.path, tt.body)
			r.Header.Set("Authorization", "Bearer "+secret)
			r.Header.Set("Idempotency-Key", secret)
			if tt.change != nil {
				tt.change(r)
			}
			w := serve(p, r)
			assertProblem(t, tt.want, w)
			assert.NotContains(t, fmt.Sprint(w.Header(), w.Body), secret)
			if tt.want == http.StatusMethodNotAllowed {
				assert.Equal(t, "POST", w.Header().Get("Allow"))
			}

			bad := partner.Score{BadRequests: 1, HighestConcurrency: 1}
			wire := partner.WireScore{Requests: 1, WorstWindow: 1}
			want := partner.Stats{SMS: bad, Wire: wire}
			if tt.path == payment {
				want = partner.Stats{Payments: partner.PaymentScore{Score: bad}, Wire: wire}
			}
			assert.Equal(t, want, p.Stats())
		})
	}

	t.Run("the longest body is none of them", func(t *testing.T) {
		p := newPartner(t, partner.Config{})
		require.Len(t, valid, 64<<10)
		r := newRequest(t, "POST", sms, valid)
		r.Header.Set("Content-Type", "Application/JSON; charset=utf-8")
		assert.Equal(t, http.StatusAccepted, serve(p, r).Code)
		assert.Equal(t, http.StatusCreated, pay(t, p, strings.Repeat("k", 255), valid).Code)
		assert.Equal(t, http.StatusAccepted,
			serve(p, newRequest(t, "POST", sms, `{"to":"1","text":"`+strings.Repeat("a", 9*153)+`"}`)).Code)
	})
}

func TestOtherPaths(t *testing.T) {
	p := newPartner(t, partner.Config{})
	for _, path := range []string{"/", "/v1", "/v1/messages/1", "/_stats/x"} {
		assertProblem(t, http.StatusNotFound, serve(p, newRequest(t, "POST", path, "")))
	}
	w := serve(p, newRequest(t, "POST", "/_stats", ""))
	assertProblem(t, http.StatusMethodNotAllowed, w)
	assert.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
	s := p.Stats()
	assert.EqualValues(t, 4, s.Wire.Requests, "/_stats is left out")
	s.Wire = partner.WireScore{}
	assert.Zero(t, s, "nothing of this is a matter of the endpoints")
}

func TestStatsAsJSON(t *testing.T) {
	p := newPartner(t, partner.Config{})
	send(t, p, strings.Repeat("a", 161))
	pay(t, p, "key", invoice(1))
	pay(t, p, "key", invoice(1))
	pay(t, p, "key", invoice(2))
	serve(p, newRequest(t, "PUT", "/v1/messages", ""))

	w := serve(p, newRequest(t, "GET", "/_stats", ""))
	assert.Equal(t, http.StatusOK, w.Code)
	assert.Equal(t, "application/json", w.Header().Get("Content-Type"))
	var got partner.Stats
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
	assert.Equal(t, p.Stats(), got)

	gap, wireGap := int64(p.Stats().Payments.SmallestGap), int64(p.Stats().Wire.SmallestGap)
	assert.JSONEq(t, fmt.Sprintf(`{
		"sms": {
			"accepted": 1, "accepted_units": 2, "refused": 0, "bad_requests": 1, "abandoned": 0, "calls_during_hold": 0,
			"worst_window": 2, "smallest_gap_ns": 0, "highest_concurrency": 1
		},
		"payments": {
			"accepted": 3, "accepted_units": 3, "refused": 0, "bad_requests": 0, "abandoned": 0, "calls_during_hold": 0,
			"worst_window": 3, "smallest_gap_ns": %d, "highest_concurrency": 1,
			"charges": 1, "replays": 1, "conflicts": 1, "duplicate_charges": 0
		},
		"wire": {"requests": 5, "connections": 0, "worst_window": 5, "smallest_gap_ns": %d}
	}`, gap, wireGap), w.Body.String())
}
