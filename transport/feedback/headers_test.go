package feedback_test

import (
	"fmt"
	"math"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/transport/feedback"
)

const (
	absent   = time.Duration(-1)
	aboveCap = time.Duration(-2)
)

func TestReadHeaders(t *testing.T) {
	const (
		ms = time.Millisecond
		s  = time.Second
	)
	lines := func(lines ...string) []string { return lines }
	for _, tc := range []struct {
		name string
		in   []string
		want time.Duration
	}{
		{"nothing", nil, absent},

		{"Retry-After: seconds", lines("Retry-After: 120"), 120 * s},
		{"Retry-After: zero", lines("Retry-After: 0"), 0},
		{"Retry-After: leading zeros", lines("Retry-After: 007"), 7 * s},
		{"Retry-After: white space", lines("Retry-After: \t 5 \t"), 5 * s},
		{"Retry-After: the cap", lines("Retry-After: 3600"), hour},
		{"Retry-After: above the cap", lines("Retry-After: 3601"), aboveCap},
		{"Retry-After: a little above the cap", lines("Retry-After: 3600.0000000001"), aboveCap},
		{"Retry-After: fraction", lines("Retry-After: 2.0"), 2 * s},
		{"Retry-After: fraction below 1", lines("Retry-After: 0.503"), 503 * ms},
		{"Retry-After: finer than a nanosecond", lines("Retry-After: 0.0000000001"), 1},
		{"Retry-After: just above a nanosecond", lines("Retry-After: 0.00000000100000000000000000001"), 2},
		{"Retry-After: no digit before the point", lines("Retry-After: .5"), 500 * ms},
		{"Retry-After: no digit after the point", lines("Retry-After: 5."), 5 * s},
		{"Retry-After: only a point", lines("Retry-After: ."), absent},
		{"Retry-After: two points", lines("Retry-After: 1.2.3"), absent},
		{"Retry-After: negative", lines("Retry-After: -5"), absent},
		{"Retry-After: minus zero", lines("Retry-After: -0"), absent},
		{"Retry-After: plus", lines("Retry-After: +5"), absent},
		{"Retry-After: NaN", lines("Retry-After: NaN"), absent},
		{"Retry-After: Inf", lines("Retry-After: Inf"), absent},
		{"Retry-After: +Infinity", lines("Retry-After: +Infinity"), absent},
		{"Retry-After: exponent", lines("Retry-After: 1e3"), absent},
		{"Retry-After: hexadecimal", lines("Retry-After: 0x10"), absent},
		{"Retry-After: underscores", lines("Retry-After: 1_000"), absent},
		{"Retry-After: other digits", lines("Retry-After: ١٢"), absent},
		{"Retry-After: words", lines("Retry-After: soon"), absent},
		{"Retry-After: empty", lines("Retry-After: "), absent},
		{"Retry-After: only commas", lines("Retry-After: , ,"), absent},
		{"Retry-After: nanoseconds overflow", lines("Retry-After: 9223372037"), aboveCap},
		{"Retry-After: int64 overflows", lines("Retry-After: 99999999999999999999"), aboveCap},
		{"Retry-After: 4000 digits", lines("Retry-After: " + strings.Repeat("9", 4000)), aboveCap},
		{"Retry-After: 4000 zeros and 7", lines("Retry-After: " + strings.Repeat("0", 4000) + "7"), 7 * s},
		{"Retry-After: longer than what is read", lines("Retry-After: " + strings.Repeat("0", 5000) + "7"), absent},
		{"Retry-After: epoch", lines("Retry-After: 1700000060"), aboveCap},
		{"Retry-After: duration", lines("Retry-After: 1m30s"), 90 * s},
		{"Retry-After: ISO 8601", lines("Retry-After: 2023-11-14T22:14:20Z"), 60 * s},

		{"Retry-After: lines", lines("Retry-After: 5", "Retry-After: 60", "Retry-After: 10"), 60 * s},
		{"Retry-After: list", lines("Retry-After: 5, 60, 10"), 60 * s},
		{"Retry-After: list, longest first", lines("Retry-After: 120, 60"), 120 * s},
		{"Retry-After: space before the comma", lines("Retry-After: 60 ,120"), 120 * s},
		{"Retry-After: thousand", lines("Retry-After: 1,000"), absent},
		{"Retry-After: decimal comma", lines("Retry-After: 60,10"), absent},
		{"Retry-After: thousand in one of several", lines("Retry-After: 5, 1,000"), absent},
		{"Retry-After: thousand in one of several lines", lines("Retry-After: 5", "Retry-After: 1,000"), absent},
		{"Retry-After: thousand, and another header", lines("Retry-After: 1,000", "RateLimit-Remaining: 0", "RateLimit-Reset: 7"), 7 * s},
		{"milliseconds: thousand", lines("Retry-After-Ms: 1,500"), absent},
		{"X-RateLimit: a thousand remain", lines("X-RateLimit-Remaining: 1,000", "X-RateLimit-Reset: 60"), absent},
		{"X-RateLimit: reset in a thousand", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1,000"), absent},
		{"draft 10: comma in a name", lines(`RateLimit: "1,000 per hour";r=0;t=30`), 30 * s},
		{"Retry-After: list with garbage", lines("Retry-After: soon, 60, -1, NaN"), 60 * s},
		{"Retry-After: list with dates", lines("Date: Tue, 14 Nov 2023 22:13:20 GMT",
			"Retry-After: 5, Tue, 14 Nov 2023 22:14:00 GMT, Tuesday, 14-Nov-23 22:15:00 GMT, 7"), 100 * s},

		{"Retry-After: date without Date", lines("Retry-After: Tue, 14 Nov 2023 22:15:20 GMT"), 120 * s},
		{"Retry-After: malformed Date", lines("Date: yesterday", "Retry-After: Tue, 14 Nov 2023 22:15:20 GMT"), 120 * s},
		{"Retry-After: Date counts", lines("Date: Tue, 14 Nov 2023 22:15:00 GMT", "Retry-After: Tue, 14 Nov 2023 22:15:20 GMT"), 20 * s},
		{"Retry-After: Date in another form", lines("Date: Tue Nov 14 22:15:00 2023", "Retry-After: Tue, 14 Nov 2023 22:15:20 GMT"), 20 * s},
		{"Retry-After: date of the last century", lines("Retry-After: Sunday, 06-Nov-94 08:49:37 GMT"), 0},
		{"Retry-After: date decades ahead", lines("Retry-After: Fri, 31 Dec 9999 23:59:59 GMT"), aboveCap},
		{"Retry-After: date of two digits, 49 years ahead", lines("Retry-After: Saturday, 14-Nov-72 22:13:20 GMT"), aboveCap},
		{"Retry-After: RFC 850 in GMT", lines("Retry-After: Tuesday, 14-Nov-23 22:15:20 GMT"), 120 * s},
		{"Retry-After: RFC 850 in UTC", lines("Retry-After: Tuesday, 14-Nov-23 22:15:20 UTC"), 120 * s},
		{"Retry-After: RFC 850 in another zone", lines("Retry-After: Tuesday, 14-Nov-23 22:15:20 PST"), absent},
		{"Retry-After: RFC 850 in an offset of GMT", lines("Retry-After: Tuesday, 14-Nov-23 22:15:20 GMT-8"), absent},
		{"Retry-After: RFC 850 without a zone", lines("Retry-After: Tuesday, 14-Nov-23 22:15:20"), absent},
		{"Retry-After: date in UTC", lines("Retry-After: Tue, 14 Nov 2023 22:15:20 UTC"), 120 * s},
		{"Retry-After: date in another zone", lines("Retry-After: Tue, 14 Nov 2023 22:15:20 PST"), absent},
		{"Retry-After: date that does not exist", lines("Retry-After: Tue, 31 Nov 2023 22:15:20 GMT"), absent},
		{"Retry-After: date cut off", lines("Retry-After: Tue, 14 Nov"), absent},
		{"Retry-After: weekday alone", lines("Retry-After: Tue"), absent},

		{"milliseconds", lines("Retry-After-Ms: 1500"), 1500 * ms},
		{"milliseconds with a fraction", lines("Retry-After-Ms: 0.0000001"), 1},
		{"milliseconds of Cosmos DB", lines("x-ms-retry-after-ms: 12"), 12 * ms},
		{"milliseconds of AWS", lines("x-amz-retry-after: 500"), 500 * ms},
		{"milliseconds: longest", lines("Retry-After-Ms: 5", "X-Ms-Retry-After-Ms: 7, 6"), 7 * ms},
		{"milliseconds win", lines("Retry-After: 2", "Retry-After-Ms: 1500"), 1500 * ms},
		{"milliseconds: negative", lines("Retry-After: 2", "Retry-After-Ms: -1"), 2 * s},
		{"milliseconds: huge", lines("Retry-After-Ms: 99999999999999999999"), aboveCap},

		{"Retry-After wins over RateLimit", lines(`RateLimit: "a";r=0;t=9`, "Retry-After: 2"), 2 * s},
		{"Retry-After that is malformed does not", lines(`RateLimit: "a";r=0;t=9`, "Retry-After: soon"), 9 * s},
		{"RateLimit wins over its older fields", lines(`RateLimit: "a";r=0;t=9`, "RateLimit-Remaining: 0", "RateLimit-Reset: 3"), 9 * s},
		{"older fields win over X-RateLimit", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 7", "RateLimit-Remaining: 0", "RateLimit-Reset: 3"), 3 * s},
		{"RateLimit without time gives way", lines(`RateLimit: "a";r=0`, "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 7"), 7 * s},

		{"draft 10", lines(`RateLimit: "default";r=0;t=30`), 30 * s},
		{"draft 10: quota left", lines(`RateLimit: "default";r=50;t=30`), absent},
		{"draft 10: spaces", lines(`RateLimit: "default"; r=0; t=30`), 30 * s},
		{"draft 10: token", lines(`RateLimit: default;r=0;t=30`), 30 * s},
		{"draft 10: several", lines(`RateLimit: "burst";r=9;t=1, "hourly";r=0;t=60, "daily";r=0;t=600`), 600 * s},
		{"draft 10: several, longest first", lines(`RateLimit: "daily";r=0;t=600, "hourly";r=0;t=60`), 600 * s},
		{"draft 10: several lines", lines(`RateLimit: "burst";r=0;t=1`, `RateLimit: "daily";r=9;t=600`), 1 * s},
		{"draft 10: partition key", lines(`RateLimit: "default";r=0;t=30;pk=:YWJj:`), 30 * s},
		{"draft 10: no t", lines(`RateLimit: "default";r=0`), absent},
		{"draft 10: no r", lines(`RateLimit: "default";t=30`), absent},
		{"draft 10: negative t", lines(`RateLimit: "default";r=0;t=-30`), absent},
		{"draft 10: t is no Integer", lines(`RateLimit: "default";r=0;t="30"`), absent},
		{"draft 10: largest t", lines(`RateLimit: "default";r=0;t=999999999999999`), aboveCap},
		{"draft 10: t too large for an Integer", lines(`RateLimit: "default";r=0;t=9999999999999999`), absent},
		{"draft 10: malformed", lines(`RateLimit: "default;r=0;t=30`), absent},
		{"draft 10: inner list", lines(`RateLimit: ("default");r=0;t=30`), absent},
		{"draft 10: a policy says nothing", lines(`RateLimit-Policy: "burst";q=100;w=60, "daily";q=1000;w=86400`), absent},

		{"draft 07", lines("RateLimit: limit=100, remaining=0, reset=5"), 5 * s},
		{"draft 07: quota left", lines("RateLimit: limit=100, remaining=50, reset=5"), absent},
		{"draft 07: no reset", lines("RateLimit: limit=100, remaining=0"), absent},
		{"draft 07: no remaining", lines("RateLimit: limit=100, reset=5"), absent},
		{"draft 07: inner lists", lines("RateLimit: remaining=(0), reset=(5)"), absent},
		{"draft 07: two lines", lines("RateLimit: limit=100, remaining=0", "RateLimit: reset=5"), 5 * s},

		{"three fields", lines("RateLimit-Limit: 100", "RateLimit-Remaining: 0", "RateLimit-Reset: 5"), 5 * s},
		{"three fields: quota left", lines("RateLimit-Remaining: 1", "RateLimit-Reset: 5"), absent},
		{"three fields: no remaining", lines("RateLimit-Reset: 5"), absent},

		{"X-RateLimit: delta", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 60"), 60 * s},
		{"X-RateLimit: fraction", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 59.9999999999"), 60 * s},
		{"X-RateLimit: epoch", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1700000060"), 60 * s},
		{"X-RateLimit: epoch with a fraction", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1700000060.25"), 60250 * ms},
		{"X-RateLimit: epoch in milliseconds", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1700000060001"), 60001 * ms},
		{"X-RateLimit: past epoch", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1699999990"), 0},
		{"X-RateLimit: smallest epoch", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1000000000"), 0},
		{"X-RateLimit: largest delta", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 999999999"), aboveCap},
		{"X-RateLimit: smallest epoch in milliseconds", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 100000000000"), 0},
		{"X-RateLimit: largest epoch", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 99999999999"), aboveCap},
		{"X-RateLimit: huge", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 99999999999999999999999"), aboveCap},
		{"X-RateLimit: epoch against Date", lines("Date: Tue, 14 Nov 2023 22:14:00 GMT", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1700000060"), 20 * s},
		{"X-RateLimit: -1", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: -1"), absent},
		{"X-RateLimit: remaining -1", lines("X-RateLimit-Remaining: -1", "X-RateLimit-Reset: 60"), 60 * s},
		{"X-RateLimit: remaining -1.5", lines("X-RateLimit-Remaining: -1.5", "X-RateLimit-Reset: 60"), 60 * s},
		{"X-RateLimit: remaining --1", lines("X-RateLimit-Remaining: --1", "X-RateLimit-Reset: 60"), absent},
		{"X-RateLimit: remaining -", lines("X-RateLimit-Remaining: -", "X-RateLimit-Reset: 60"), absent},
		{"three fields: remaining -1", lines("RateLimit-Remaining: -1", "RateLimit-Reset: 5"), 5 * s},
		{"draft 10: r=-1", lines(`RateLimit: "default";r=-1;t=30`), 30 * s},
		{"draft 07: remaining=-1", lines("RateLimit: limit=100, remaining=-1, reset=5"), 5 * s},
		{"X-RateLimit: remaining 0.0", lines("X-RateLimit-Remaining: 0.0", "X-RateLimit-Reset: 60"), 60 * s},
		{"X-RateLimit: remaining 0.1", lines("X-RateLimit-Remaining: 0.1", "X-RateLimit-Reset: 60"), absent},
		{"X-RateLimit: remaining 10", lines("X-RateLimit-Remaining: 10", "X-RateLimit-Reset: 60"), absent},
		{"X-RateLimit: no remaining", lines("X-RateLimit-Reset: 60"), absent},
		{"X-RateLimit: no reset", lines("X-RateLimit-Remaining: 0"), absent},
		{"X-RateLimit: duration", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 6m0s"), 6 * time.Minute},
		{"X-RateLimit: milliseconds", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 12ms"), 12 * ms},
		{"X-RateLimit: all units", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 0d0h1m1.5s1ms1us1µs1μs1ns"), time.Minute + 1501*ms + 3001},
		{"X-RateLimit: a day", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1d"), aboveCap},
		{"X-RateLimit: huge duration", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 9999999999999h9999999999999h"), aboveCap},
		{"X-RateLimit: duration rounds up", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1.0000000001s"), s + 1},
		{"X-RateLimit: negative duration", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: -6m0s"), absent},
		{"X-RateLimit: number missing", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: s"), absent},
		{"X-RateLimit: last unit missing", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 6m5"), absent},
		{"X-RateLimit: unknown unit", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 6 weeks"), absent},
		{"X-RateLimit: RFC 3339", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 2023-11-14T22:14:20Z"), 60 * s},
		{"X-RateLimit: RFC 3339 with a zone", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 2023-11-15T00:14:20.5+02:00"), 60500 * ms},
		{"X-RateLimit: ISO 8601 zone", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 2023-11-15T00:14:20+0200"), 60 * s},
		{"X-RateLimit: ISO 8601 to the minute", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 2023-11-14T22:15Z"), 100 * s},
		{"X-RateLimit: ISO 8601 without a zone", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 2023-11-14T22:14:20"), 60 * s},
		{"X-RateLimit: HTTP-date", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: Tue, 14 Nov 2023 22:14:20 GMT"), 60 * s},
		{"X-RateLimit: past date", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 2001-01-01T00:00:00Z"), 0},
		{"X-Rate-Limit", lines("X-Rate-Limit-Remaining: 0", "X-Rate-Limit-Reset: 1700000060"), 60 * s},

		{"several values: the one at the same place", lines("X-RateLimit-Remaining: 0, 70", "X-RateLimit-Reset: 1, 60"), 1 * s},
		{"several lines: the one at the same place", lines("X-RateLimit-Remaining: 5", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1", "X-RateLimit-Reset: 60"), 60 * s},
		{"several values: longest of those used up", lines("X-RateLimit-Remaining: 0, 0, 1", "X-RateLimit-Reset: 1, 60, 600"), 60 * s},
		{"several counts, one reset", lines("X-RateLimit-Remaining: 3, 0", "X-RateLimit-Reset: 60"), 60 * s},
		{"one count, several resets", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1, 60"), 60 * s},

		{"Discord", lines("X-RateLimit-Limit: 5", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1700000001.5", "X-RateLimit-Reset-After: 0.503", "X-RateLimit-Bucket: abcd1234"), 503 * ms},
		{"Discord: reset-after is malformed", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1700000001.5", "X-RateLimit-Reset-After: x"), 1500 * ms},
		{"Discord: left", lines("X-RateLimit-Remaining: 1", "X-RateLimit-Reset-After: 0.503"), absent},

		{"OpenAI: requests", lines("x-ratelimit-remaining-requests: 0", "x-ratelimit-reset-requests: 12ms", "x-ratelimit-remaining-tokens: 149984", "x-ratelimit-reset-tokens: 6m0s"), 12 * ms},
		{"OpenAI: tokens", lines("x-ratelimit-remaining-requests: 59", "x-ratelimit-reset-requests: 1s", "x-ratelimit-remaining-tokens: 0", "x-ratelimit-reset-tokens: 6m0s"), 6 * time.Minute},
		{"OpenAI: both", lines("x-ratelimit-remaining-requests: 0", "x-ratelimit-reset-requests: 1s", "x-ratelimit-remaining-tokens: 0", "x-ratelimit-reset-tokens: 6m0s"), 6 * time.Minute},
		{"OpenAI: neither", lines("x-ratelimit-remaining-requests: 9", "x-ratelimit-reset-requests: 1s", "x-ratelimit-remaining-tokens: 7", "x-ratelimit-reset-tokens: 6m0s"), absent},
		{"a reset of another limit", lines("x-ratelimit-remaining-requests: 0", "x-ratelimit-reset-tokens: 6m0s"), absent},
		{"a name that only begins alike", lines("x-ratelimit-remainingness: 0", "x-ratelimit-resetness: 5"), absent},
		{"Anthropic", lines("anthropic-ratelimit-requests-remaining: 0", "anthropic-ratelimit-requests-reset: 2023-11-14T22:13:50Z", "anthropic-ratelimit-input-tokens-remaining: 1000", "anthropic-ratelimit-input-tokens-reset: 2023-11-14T22:14:20Z"), 30 * s},
		{"Anthropic: retry-after", lines("retry-after: 7", "anthropic-ratelimit-requests-remaining: 0", "anthropic-ratelimit-requests-reset: 2023-11-14T22:13:50Z"), 7 * s},

		{"HubSpot: interval", lines("X-HubSpot-RateLimit-Max: 100", "X-HubSpot-RateLimit-Remaining: 0", "X-HubSpot-RateLimit-Interval-Milliseconds: 10000", "X-HubSpot-RateLimit-Daily-Remaining: 4000"), 10 * s},
		{"HubSpot: left", lines("X-HubSpot-RateLimit-Remaining: 7", "X-HubSpot-RateLimit-Interval-Milliseconds: 10000"), absent},
		{"HubSpot: daily", lines("X-HubSpot-RateLimit-Remaining: 99", "X-HubSpot-RateLimit-Interval-Milliseconds: 10000", "X-HubSpot-RateLimit-Daily-Remaining: 0"), absent},
		{"Shopify: REST", lines("X-Shopify-Shop-Api-Call-Limit: 40/40", "Retry-After: 2.0"), 2 * s},
		{"Shopify: the bucket alone", lines("X-Shopify-Shop-Api-Call-Limit: 40/40"), absent},
		{"Zendesk", lines("ratelimit-limit: 700", "ratelimit-remaining: 0", "ratelimit-reset: 41", "retry-after: 42"), 42 * s},
		{"Jira", lines("X-RateLimit-Limit: 350", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 2023-11-14T22:15:00Z", "RateLimit-Reason: jira-burst-based"), 100 * s},
		{"Jira: to the minute", lines("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 2023-11-14T22:15Z"), 100 * s},
		{"GitHub", lines("x-ratelimit-limit: 5000", "x-ratelimit-remaining: 0", "x-ratelimit-reset: 1700003599"), 3599 * s},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := header(tc.in...)
			before := h.Clone()
			got, capped, ok := feedback.ReadHeaders(h, now, hour)
			switch tc.want {
			case absent:
				assert.False(t, ok)
				assert.False(t, capped)
				assert.Zero(t, got)
			case aboveCap:
				assert.True(t, ok)
				assert.True(t, capped)
				assert.Equal(t, hour, got)
			default:
				assert.True(t, ok)
				assert.False(t, capped)
				assert.Equal(t, tc.want, got)
			}
			assert.Equal(t, before, h, "the header is not changed")
		})
	}
}

func TestReadHeadersBounds(t *testing.T) {
	for _, tc := range []struct {
		value  string
		max    time.Duration
		want   time.Duration
		capped bool
	}{
		{"0", 0, 0, false},
		{"5", 0, 0, true},
		{"0", -hour, 0, false},
		{"5", -hour, 0, true},
		{"99999999999999999999", math.MaxInt64, math.MaxInt64, false}, // the longest there is
	} {
		got, capped, ok := feedback.ReadHeaders(header("Retry-After: "+tc.value), now, tc.max)
		assert.True(t, ok)
		assert.Equal(t, tc.want, got, "%+v", tc)
		assert.Equal(t, tc.capped, capped, "%+v", tc)
	}
}

// Values without an end, each short, are as much work as long ones.
func TestManyValuesAreAbsent(t *testing.T) {
	const most = 64
	for _, value := range []string{"", "7"} {
		many := make([]string, most)
		for i := range many {
			many[i] = value
		}
		many[0] = "7"
		for _, lines := range [][]string{many, {strings.Join(many, ", ")}} {
			h := http.Header{"Retry-After": lines}
			got, _, ok := feedback.ReadHeaders(h, now, hour)
			assert.True(t, ok)
			assert.Equal(t, 7*time.Second, got)

			h["Retry-After"] = append(lines, value)
			_, _, ok = feedback.ReadHeaders(h, now, hour)
			assert.False(t, ok)
		}
	}
}

// Decimals and durations against exact rationals: never less than what was written,
// and less than a nanosecond more.
func TestNumbersAreExact(t *testing.T) {
	units := map[string]int64{"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9, "d": 86400e9}
	names := []string{"ns", "us", "ms", "s", "m", "h", "d"}
	rapid.Check(t, func(t *rapid.T) {
		sum := new(big.Rat)
		var text strings.Builder
		for range rapid.IntRange(1, 3).Draw(t, "terms") {
			number := rapid.StringMatching(`[0-9]{1,25}(\.[0-9]{1,25})?`).Draw(t, "number")
			unit := rapid.SampledFrom(names).Draw(t, "unit")
			n, ok := new(big.Rat).SetString(number)
			require.True(t, ok)
			// Each term rounds up by itself.
			sum.Add(sum, new(big.Rat).SetInt(ceil(n.Mul(n, new(big.Rat).SetInt64(units[unit])))))
			text.WriteString(number + unit)
		}
		want := sum.Num()
		if !want.IsInt64() {
			want = big.NewInt(math.MaxInt64)
		}
		got, capped, ok := feedback.ReadHeaders(header("Retry-After: "+text.String()), now, math.MaxInt64)
		require.True(t, ok)
		require.False(t, capped)
		require.Equal(t, want.Int64(), int64(got), "%s", text.String())
	})
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.StringMatching(`[0-9]{1,25}(\.[0-9]{1,25})?`).Draw(t, "number")
		for field, unit := range map[string]int64{"Retry-After": 1e9, "Retry-After-Ms": 1e6} {
			n, _ := new(big.Rat).SetString(number)
			want := ceil(n.Mul(n, new(big.Rat).SetInt64(unit)))
			if !want.IsInt64() {
				want = big.NewInt(math.MaxInt64)
			}
			got, _, ok := feedback.ReadHeaders(header(field+": "+number), now, math.MaxInt64)
			require.True(t, ok)
			require.Equal(t, want.Int64(), int64(got), "%s: %s", field, number)
		}
	})
}

func ceil(x *big.Rat) *big.Int {
	q, r := new(big.Int).QuoRem(x.Num(), x.Denom(), new(big.Int))
	if r.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q
}

// Any point in time, in every form that can state it to the second, is the same wait.
func TestFormsOfATimeAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := time.Unix(rapid.Int64Range(1_000_000_000, 2_500_000_000).Draw(t, "sent"), 0).UTC()
		want := time.Duration(rapid.Int64Range(-1e6, 1e6).Draw(t, "seconds")) * time.Second
		at := sent.Add(want)
		if at.Unix() < 1_000_000_000 {
			return
		}
		skewed := sent.Add(time.Duration(rapid.Int64Range(-1e6, 1e6).Draw(t, "skew")) * time.Second)
		for _, value := range []string{
			at.Format(http.TimeFormat), at.Format(time.RFC850), at.Format(time.ANSIC), at.Format(time.RFC3339),
			fmt.Sprint(at.Unix()), fmt.Sprint(at.UnixMilli()),
		} {
			// RFC 850 writes its zone as UTC; HTTP says GMT.
			value = strings.Replace(value, "UTC", "GMT", 1)
			h := header("Date: "+sent.Format(http.TimeFormat), "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: "+value)
			got, _, ok := feedback.ReadHeaders(h, skewed, math.MaxInt64)
			require.True(t, ok, value)
			require.Equal(t, max(want, 0), got, value)
		}
	})
}
