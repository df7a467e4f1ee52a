package feedback_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/transport/feedback"
)

// The forms in which partners state their limits.
func TestReadLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		lines []string
		want  []feedback.Limit
	}{
		"nothing":          {nil, nil},
		"policy, draft 10": {[]string{`RateLimit-Policy: "burst";q=100;w=60, "daily";q=1000;w=86400`}, []feedback.Limit{{"burst", 100, time.Minute}, {"daily", 1000, 24 * time.Hour}}},
		"policy, draft 03": {[]string{"RateLimit-Policy: 10;w=1, 50;w=60"}, []feedback.Limit{{"", 10, time.Second}, {"", 50, time.Minute}}},
		"no window":        {[]string{`RateLimit-Policy: "a";q=5`}, []feedback.Limit{{"a", 5, 0}}},
		"limit":            {[]string{"X-RateLimit-Limit: 5000"}, []feedback.Limit{{"", 5000, 0}}},
		"limit, twice":     {[]string{"RateLimit-Limit: 100, 100;w=60"}, []feedback.Limit{{"", 100, time.Minute}}},
		"by name":          {[]string{"x-ratelimit-limit-tokens: 40000", "x-ratelimit-limit-requests: 500"}, []feedback.Limit{{"requests", 500, 0}, {"tokens", 40000, 0}}},
		"Anthropic":        {[]string{"anthropic-ratelimit-requests-limit: 50"}, []feedback.Limit{{"requests", 50, 0}}},
		"X-Rate-Limit":     {[]string{"X-Rate-Limit-Limit: 15"}, []feedback.Limit{{"", 15, 0}}},
		"HubSpot":          {[]string{"X-HubSpot-RateLimit-Max: 110", "X-HubSpot-RateLimit-Interval-Milliseconds: 10000"}, []feedback.Limit{{"", 110, 10 * time.Second}}},
		"policy first":     {[]string{"RateLimit-Policy: 10;w=1", "X-RateLimit-Limit: 600"}, []feedback.Limit{{"", 10, time.Second}}},
		"garbage":          {[]string{"X-RateLimit-Limit: abc", "RateLimit-Policy: ;;;"}, nil},
		"zero":             {[]string{"X-RateLimit-Limit: 0", `RateLimit-Policy: "a";q=0;w=1, "b";q=-1`}, nil},
		"negative window":  {[]string{`RateLimit-Policy: "a";q=5;w=-1`}, []feedback.Limit{{"a", 5, 0}}},
		"a fraction":       {[]string{"X-RateLimit-Limit: 2.5"}, nil},
	} {
		assert.Equal(t, tc.want, feedback.ReadLimits(respond(200, "", tc.lines...).Header), name)
	}
}

// What an answer that is no refusal says of what remains.
func TestReadSpent(t *testing.T) {
	for name, tc := range map[string]struct {
		lines []string
		wait  time.Duration
		ok    bool
	}{
		"nothing":             {nil, 0, false},
		"draft 10":            {[]string{`RateLimit: "a";r=0;t=60`}, time.Minute, true},
		"one of two":          {[]string{`RateLimit: "a";r=7;t=60, "b";r=0;t=30`}, 30 * time.Second, true},
		"draft 07":            {[]string{"RateLimit: limit=10, remaining=0, reset=5"}, 5 * time.Second, true},
		"fields":              {[]string{"RateLimit-Remaining: 0", "RateLimit-Reset: 60"}, time.Minute, true},
		"epoch":               {[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1700000060"}, time.Minute, true},
		"Go duration":         {[]string{"x-ratelimit-remaining-tokens: 0", "x-ratelimit-reset-tokens: 12ms"}, 12 * time.Millisecond, true},
		"HubSpot":             {[]string{"X-HubSpot-RateLimit-Remaining: 0", "X-HubSpot-RateLimit-Interval-Milliseconds: 10000"}, 10 * time.Second, true},
		"above the cap":       {[]string{"RateLimit-Remaining: 0", "RateLimit-Reset: 86400"}, time.Hour, true},
		"past":                {[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1699999990"}, 0, true},
		"something remains":   {[]string{"X-RateLimit-Remaining: 1", "X-RateLimit-Reset: 60"}, 0, false},
		"no reset":            {[]string{"X-RateLimit-Remaining: 0"}, 0, false},
		"a Retry-After alone": {[]string{"Retry-After: 60", "X-RateLimit-Remaining: 5"}, 0, false},
	} {
		wait, capped, ok := feedback.ReadSpent(respond(200, "", tc.lines...).Header, now, time.Hour)
		assert.Equal(t, tc.ok, ok, name)
		assert.Equal(t, tc.wait, wait, name)
		assert.Equal(t, name == "above the cap", capped, name)
		want := feedback.Verdict{}
		if tc.ok {
			want = feedback.Verdict{Spent: true, Stated: true, Wait: tc.wait, Capped: capped}
		}
		assert.Equal(t, want, feedback.Default(answer(respond(204, "", tc.lines...))), name)
	}
}

// Whose limit it is that was met.
func TestAccount(t *testing.T) {
	for line, want := range map[string]bool{
		"X-RateLimit-Global: true":                  true,
		"X-RateLimit-Global: false":                 false,
		"X-RateLimit-Scope: global":                 true,
		"X-RateLimit-Scope: account":                true,
		"X-RateLimit-Scope: user":                   false,
		"X-RateLimit-Scope: shared":                 false,
		"Stripe-Rate-Limited-Reason: global-rate":   true,
		"Stripe-Rate-Limited-Reason: endpoint-rate": false,
		"RateLimit-Reason: jira-quota-global-based": true,
		"RateLimit-Reason: jira-quota-tenant-based": false,
		"X-Something-Else: global":                  false,
	} {
		assert.Equal(t, refused(wait(time.Minute), func(v *feedback.Verdict) { v.Account = want }),
			feedback.Default(answer(respond(429, "", "Retry-After: 60", line))), line)
	}
}

// The first that says Refused wins over one that says Spent, wherever that stands.
func TestAnyPrefersARefusal(t *testing.T) {
	spends := func(*feedback.Answer) feedback.Verdict { return spent(time.Minute) }
	refuses := func(*feedback.Answer) feedback.Verdict { return refused() }
	assert.Equal(t, refused(), feedback.Any(spends, nil, refuses)(answer(respond(200, ""))))
	assert.Equal(t, spent(time.Minute), feedback.Any(spends, feedback.Default)(answer(respond(200, ""))))
}

// The lowest count of those that state when they start afresh.
func TestReadRemaining(t *testing.T) {
	for name, tc := range map[string]struct {
		lines []string
		units int64
		wait  time.Duration
	}{
		"nothing":         {nil, 0, 0},
		"draft 10":        {[]string{`RateLimit: "a";r=50;t=30, "b";r=7;t=60`}, 7, time.Minute},
		"draft 07":        {[]string{"RateLimit: limit=10, remaining=4, reset=5"}, 4, 5 * time.Second},
		"fields":          {[]string{"RateLimit-Remaining: 3", "RateLimit-Reset: 60"}, 3, time.Minute},
		"epoch":           {[]string{"X-RateLimit-Remaining: 12", "X-RateLimit-Reset: 1700000060"}, 12, time.Minute},
		"reset after":     {[]string{"X-RateLimit-Remaining: 1", "X-RateLimit-Reset-After: 0.5", "X-RateLimit-Reset: 1700000060"}, 1, time.Minute},
		"by name":         {[]string{"x-ratelimit-remaining-tokens: 900", "x-ratelimit-reset-tokens: 6m0s", "x-ratelimit-remaining-requests: 59", "x-ratelimit-reset-requests: 1s"}, 59, time.Second},
		"HubSpot":         {[]string{"X-HubSpot-RateLimit-Remaining: 8", "X-HubSpot-RateLimit-Interval-Milliseconds: 10000"}, 8, 10 * time.Second},
		"two values":      {[]string{"X-RateLimit-Remaining: 5, 9", "X-RateLimit-Reset: 60, 120"}, 5, 2 * time.Minute},
		"used up":         {[]string{`RateLimit: "a";r=0;t=30, "b";r=7;t=60`}, 0, 0},
		"no reset":        {[]string{"X-RateLimit-Remaining: 3"}, 0, 0},
		"garbage":         {[]string{"X-RateLimit-Remaining: many", "X-RateLimit-Reset: 60"}, 0, 0},
		"above the cap":   {[]string{"X-RateLimit-Remaining: 3", "X-RateLimit-Reset: 7200"}, 3, time.Hour},
		"a count without": {[]string{"X-RateLimit-Remaining: 1,000", "X-RateLimit-Reset: 60"}, 0, 0},
	} {
		units, wait, ok := feedback.ReadRemaining(respond(200, "", tc.lines...).Header, now, hour)
		assert.Equal(t, tc.units > 0, ok, name)
		assert.Equal(t, tc.units, units, name)
		assert.Equal(t, tc.wait, wait, name)
	}
}
