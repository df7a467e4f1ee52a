package partner_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/partner"
)

const forever time.Duration = math.MaxInt64

// hintCases says what each hint looks like if a call is refused for 1.978 s at
// 300 ms after midnight UTC, 1 January 2000, a Saturday, by a limit of 10 per 90 s.
var hintCases = map[partner.Hint]struct {
	header map[string]string
	hold   time.Duration
}{
	partner.NoHint:             {nil, 0},
	partner.RetryAfterSeconds:  {map[string]string{"Retry-After": "2"}, 2 * time.Second},
	partner.RetryAfterIMF:      {map[string]string{"Retry-After": "Sat, 01 Jan 2000 00:00:03 GMT"}, 2700 * time.Millisecond},
	partner.RetryAfterRFC850:   {map[string]string{"Retry-After": "Saturday, 01-Jan-00 00:00:03 GMT"}, 2700 * time.Millisecond},
	partner.RetryAfterAsctime:  {map[string]string{"Retry-After": "Sat Jan  1 00:00:03 2000"}, 2700 * time.Millisecond},
	partner.RetryAfterFraction: {map[string]string{"Retry-After": "1.978"}, 1978 * time.Millisecond},
	partner.RetryAfterMillis:   {map[string]string{"Retry-After-Ms": "1978"}, 1978 * time.Millisecond},
	partner.RetryAfterEpoch:    {map[string]string{"Retry-After": "946684803"}, 2700 * time.Millisecond},
	partner.RetryAfterHuge:     {map[string]string{"Retry-After": "9223372037"}, forever},
	partner.RetryAfterEndless:  {map[string]string{"Retry-After": "99999999999999999999"}, forever},
	partner.RetryAfterZero:     {map[string]string{"Retry-After": "0"}, 0},
	partner.RetryAfterPast:     {map[string]string{"Retry-After": "Fri, 31 Dec 1999 23:59:30 GMT"}, 0},
	partner.RetryAfterNegative: {map[string]string{"Retry-After": "-5"}, 0},
	partner.RetryAfterGarbage:  {map[string]string{"Retry-After": "soon"}, 0},
	partner.RetryAfterEmpty:    {map[string]string{"Retry-After": ""}, 0},
	partner.RateLimitDraft10: {map[string]string{
		"Ratelimit-Policy": `"default";q=10;w=90`, "Ratelimit": `"default";r=0;t=2`,
	}, 2 * time.Second},
	partner.RateLimitDraft07:   {map[string]string{"Ratelimit": "limit=10, remaining=0, reset=2"}, 2 * time.Second},
	partner.RateLimitFields:    {remaining("Ratelimit-", "Reset", "2"), 2 * time.Second},
	partner.XRateLimitDelta:    {remaining("X-Ratelimit-", "Reset", "2"), 2 * time.Second},
	partner.XRateLimitEpoch:    {remaining("X-Ratelimit-", "Reset", "946684803"), 2700 * time.Millisecond},
	partner.XRateLimitEpochMs:  {remaining("X-Ratelimit-", "Reset", "946684802278"), 1978 * time.Millisecond},
	partner.XRateLimitDuration: {remaining("X-Ratelimit-", "Reset", "1.978s"), 1978 * time.Millisecond},
	partner.XRateLimitISO:      {remaining("X-Ratelimit-", "Reset", "2000-01-01T00:00:03Z"), 2700 * time.Millisecond},
	partner.XRateLimitAfter:    {remaining("X-Ratelimit-", "Reset-After", "1.978"), 1978 * time.Millisecond},
}

func remaining(prefix, reset, value string) map[string]string {
	return map[string]string{prefix + "Limit": "10", prefix + "Remaining": "0", prefix + reset: value}
}

// ofHint returns the fields of a header that hints write.
func ofHint(h http.Header) map[string]string {
	var fields map[string]string
	for name, values := range h {
		if strings.HasPrefix(name, "Retry-") || strings.Contains(name, "Ratelimit") {
			if fields == nil {
				fields = make(map[string]string)
			}
			fields[name] = strings.Join(values, " | ")
		}
	}
	return fields
}

// Each hint has its exact text, and the hold ends exactly when it says.
func TestHints(t *testing.T) {
	require.Len(t, hintCases, len(partner.Hints()))
	for _, hint := range partner.Hints() {
		t.Run(string(hint), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				want := hintCases[hint]
				p := newPartner(t, partner.Config{SMS: partner.Endpoint{
					Limit:     partner.Limit{Units: 10, Window: 90 * time.Second},
					Misbehave: partner.Mood{Hint: hint},
				}})
				time.Sleep(300 * time.Millisecond)
				p.SMS().Refuse(1, 1978*time.Millisecond)
				w := send(t, p, "a")
				assertProblem(t, http.StatusTooManyRequests, w)
				assert.Equal(t, want.header, ofHint(w.Header()))
				assert.Equal(t, "Sat, 01 Jan 2000 00:00:00 GMT", w.Header().Get("Date"))

				early := func() int64 { return p.Stats().SMS.CallsDuringHold }
				if want.hold == 0 {
					send(t, p, "a")
					assert.Zero(t, early())
					return
				}
				time.Sleep(min(want.hold, 100*time.Hour) - 1)
				send(t, p, "a")
				assert.EqualValues(t, 1, early())
				if want.hold < forever {
					time.Sleep(time.Nanosecond)
					send(t, p, "a")
					assert.EqualValues(t, 1, early(), "the hold is over")
				}
			})
		})
	}
}

// A clock that is 45 s ahead moves the Date and every instant with it, and no delay.
func TestSkewMovesInstantsOnly(t *testing.T) {
	moved := map[partner.Hint]string{
		partner.RetryAfterIMF:     "Sat, 01 Jan 2000 00:00:48 GMT",
		partner.RetryAfterRFC850:  "Saturday, 01-Jan-00 00:00:48 GMT",
		partner.RetryAfterAsctime: "Sat Jan  1 00:00:48 2000",
		partner.RetryAfterPast:    "Sat, 01 Jan 2000 00:00:15 GMT",
		partner.RetryAfterEpoch:   "946684848",
		partner.XRateLimitEpoch:   "946684848",
		partner.XRateLimitEpochMs: "946684847278",
		partner.XRateLimitISO:     "2000-01-01T00:00:48Z",
	}
	for _, hint := range partner.Hints() {
		synctest.Test(t, func(t *testing.T) {
			p := newPartner(t, partner.Config{SMS: partner.Endpoint{
				Limit:     partner.Limit{Units: 10, Window: 90 * time.Second},
				Misbehave: partner.Mood{Hint: hint, Skew: 45 * time.Second},
			}})
			time.Sleep(300 * time.Millisecond)
			assert.Equal(t, "Sat, 01 Jan 2000 00:00:45 GMT", send(t, p, "a").Header().Get("Date"), "accepted")
			p.SMS().Refuse(1, 1978*time.Millisecond)
			w := send(t, p, "a")
			assert.Equal(t, "Sat, 01 Jan 2000 00:00:45 GMT", w.Header().Get("Date"), "refused")
			get := serve(p, newRequest(t, "GET", "/v1/messages", ""))
			assert.Equal(t, "Sat, 01 Jan 2000 00:00:45 GMT", get.Header().Get("Date"), "bad")

			want := hintCases[hint]
			got := ofHint(w.Header())
			for name, value := range want.header {
				if late, ok := moved[hint]; ok && (name == "Retry-After" || name == "X-Ratelimit-Reset") {
					value = late
				}
				assert.Equal(t, value, got[name], "%s %s", hint, name)
			}

			if hold := want.hold; hold > 0 && hold < forever {
				time.Sleep(hold - 1)
				send(t, p, "a")
				time.Sleep(time.Nanosecond)
				send(t, p, "a")
				assert.EqualValues(t, 1, p.Stats().SMS.CallsDuringHold, "%s: a wrong clock is no shorter hold", hint)
			}
		})
	}
}

// A wait that is not known: one second, and never a time in the past or none at all.
func TestHintsOfAnUnknownWait(t *testing.T) {
	want := map[partner.Hint]string{
		partner.RetryAfterSeconds:  "1",
		partner.RetryAfterIMF:      "Sat, 01 Jan 2000 00:00:01 GMT",
		partner.RetryAfterFraction: "1.0",
		partner.RetryAfterEpoch:    "946684801",
	}
	for hint, value := range want {
		synctest.Test(t, func(t *testing.T) {
			p := newPartner(t, partner.Config{Payments: partner.Endpoint{Misbehave: partner.Mood{Hint: hint}}})
			p.Payments().Refuse(1, 0)
			assert.Equal(t, value, pay(t, p, "k", invoice(1)).Header().Get("Retry-After"))
		})
	}
}

// What a handler sets is what net/http's client reads, for every hint: nothing is
// lost, added or made tidy on the way, not even an empty field or a Date.
func TestHintsOnTheWire(t *testing.T) {
	p := newPartner(t, partner.Config{})
	url, _, client := start(t, p)
	require.NoError(t, p.SMS().SetLimit(partner.Limit{Units: 10, Window: 90 * time.Second}))
	for _, hint := range partner.Hints() {
		const skew = 30 * 24 * time.Hour
		require.NoError(t, p.SMS().Misbehave(partner.Mood{Hint: hint, Skew: skew}))
		p.SMS().Refuse(1, 1978*time.Millisecond)
		res, err := client.Do(newPost(t, url+"/v1/messages", "", `{"to":"1"}`))
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, res.Body)
		assert.NoError(t, err)
		require.NoError(t, res.Body.Close())
		assert.Equal(t, http.StatusTooManyRequests, res.StatusCode)

		want := hintCases[hint].header
		got := ofHint(res.Header)
		require.Len(t, got, len(want), hint)
		for name, value := range want {
			require.Contains(t, got, name)
			// Only what tells an instant differs from the case.
			if instant := strings.ContainsAny(value, ":") || len(value) == 9 || len(value) == 12; instant {
				assert.NotEqual(t, value, got[name], hint)
				assert.Len(t, strings.Fields(got[name]), len(strings.Fields(value)), hint)
			} else {
				assert.Equal(t, value, got[name], hint)
			}
		}
		date, err := http.ParseTime(res.Header.Get("Date"))
		require.NoError(t, err)
		assert.Greater(t, time.Until(date), skew/2, "skewed")
		if at, err := http.ParseTime(res.Header.Get("Retry-After")); err == nil && hint != partner.RetryAfterPast {
			assert.Contains(t, []time.Duration{2 * time.Second, 3 * time.Second}, at.Sub(date), fmt.Sprint(hint))
		}
	}
}
