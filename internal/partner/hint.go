package partner

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// A Hint is a form in which the header of a refusal states when to come back. Where
// the partner cannot know when a call might be accepted, a Hint that needs a time states one
// second. What a form cannot express is rounded up, so a caller that keeps to it is
// never too early.
type Hint string

// The hints.
const (
	NoHint Hint = "none"

	RetryAfterSeconds Hint = "retry-after-seconds" // 2
	RetryAfterIMF     Hint = "retry-after-imf"     // Sun, 06 Nov 1994 08:49:37 GMT
	RetryAfterRFC850  Hint = "retry-after-rfc850"  // Sunday, 06-Nov-94 08:49:37 GMT
	RetryAfterAsctime Hint = "retry-after-asctime" // Sun Nov  6 08:49:37 1994

	// Forms that should not be, but state a time.
	RetryAfterFraction Hint = "retry-after-fraction" // 2.0, 0.978
	RetryAfterMillis   Hint = "retry-after-ms"       // Retry-After-Ms: 978
	RetryAfterEpoch    Hint = "retry-after-epoch"    // 1700000060
	RetryAfterHuge     Hint = "retry-after-huge"     // 9223372037: more than fits a time.Duration
	RetryAfterEndless  Hint = "retry-after-endless"  // 99999999999999999999: nor an int64

	// Forms that state no time, or one that is over.
	RetryAfterZero     Hint = "retry-after-zero"     // 0
	RetryAfterPast     Hint = "retry-after-past"     // half a minute ago, as IMF-fixdate
	RetryAfterNegative Hint = "retry-after-negative" // -5
	RetryAfterGarbage  Hint = "retry-after-garbage"  // soon
	RetryAfterEmpty    Hint = "retry-after-empty"    // a field without a value

	// The fields of draft-ietf-httpapi-ratelimit-headers. Whole seconds, nothing
	// remaining.
	RateLimitDraft10 Hint = "ratelimit-10"     // RateLimit: "default";r=0;t=2
	RateLimitDraft07 Hint = "ratelimit-07"     // RateLimit: limit=10, remaining=0, reset=2
	RateLimitFields  Hint = "ratelimit-fields" // RateLimit-Limit, -Remaining, -Reset: 2

	// X-RateLimit-Limit, X-RateLimit-Remaining: 0 and X-RateLimit-Reset.
	XRateLimitDelta    Hint = "x-ratelimit-delta"    // 2
	XRateLimitEpoch    Hint = "x-ratelimit-epoch"    // 1700000060
	XRateLimitEpochMs  Hint = "x-ratelimit-epoch-ms" // 1700000060000
	XRateLimitDuration Hint = "x-ratelimit-duration" // 978ms
	XRateLimitISO      Hint = "x-ratelimit-iso"      // 2023-11-14T22:14:20Z
	XRateLimitAfter    Hint = "x-ratelimit-after"    // X-RateLimit-Reset-After: 0.978
)

// Hints returns all hints.
func Hints() []Hint {
	return []Hint{
		NoHint,
		RetryAfterSeconds, RetryAfterIMF, RetryAfterRFC850, RetryAfterAsctime,
		RetryAfterFraction, RetryAfterMillis, RetryAfterEpoch, RetryAfterHuge, RetryAfterEndless,
		RetryAfterZero, RetryAfterPast, RetryAfterNegative, RetryAfterGarbage, RetryAfterEmpty,
		RateLimitDraft10, RateLimitDraft07, RateLimitFields,
		XRateLimitDelta, XRateLimitEpoch, XRateLimitEpochMs, XRateLimitDuration, XRateLimitISO, XRateLimitAfter,
	}
}

// A statement is what a hint has to say.
type statement struct {
	now   time.Time // by the partner's clock
	wait  time.Duration
	limit Limit
}

const endless time.Duration = math.MaxInt64

// hints write their fields and return how long they tell the caller to stay away: 0
// if they state no time, or none to come.
var hints = map[Hint]func(http.Header, statement) time.Duration{
	NoHint: fixed(0),

	RetryAfterSeconds: func(h http.Header, s statement) time.Duration {
		return put(h, "Retry-After", delaySeconds(s.wait), s.delta())
	},
	RetryAfterIMF:     date(http.TimeFormat),
	RetryAfterRFC850:  date("Monday, 02-Jan-06 15:04:05 GMT"),
	RetryAfterAsctime: date(time.ANSIC),
	RetryAfterFraction: func(h http.Header, s statement) time.Duration {
		return put(h, "Retry-After", fraction(s.wait), times(ceil(s.wait, time.Millisecond), time.Millisecond))
	},
	RetryAfterMillis: func(h http.Header, s statement) time.Duration {
		ms := ceil(s.wait, time.Millisecond)
		return put(h, "Retry-After-Ms", strconv.FormatInt(ms, 10), times(ms, time.Millisecond))
	},
	RetryAfterEpoch: func(h http.Header, s statement) time.Duration {
		at := s.instant(time.Second)
		return put(h, "Retry-After", strconv.FormatInt(at.Unix(), 10), at.Sub(s.now))
	},
	RetryAfterHuge:    fixed(endless, "Retry-After", "9223372037"),
	RetryAfterEndless: fixed(endless, "Retry-After", "99999999999999999999"),

	RetryAfterZero: fixed(0, "Retry-After", "0"),
	RetryAfterPast: func(h http.Header, s statement) time.Duration {
		return put(h, "Retry-After", s.now.Add(-30*time.Second).UTC().Format(http.TimeFormat), 0)
	},
	RetryAfterNegative: fixed(0, "Retry-After", "-5"),
	RetryAfterGarbage:  fixed(0, "Retry-After", "soon"),
	RetryAfterEmpty:    fixed(0, "Retry-After", ""),

	RateLimitDraft10: func(h http.Header, s statement) time.Duration {
		window := ceil(s.limit.Window, time.Second)
		h.Set("RateLimit-Policy", fmt.Sprintf(`"default";q=%d;w=%d`, s.limit.Units, window))
		return put(h, "RateLimit", fmt.Sprintf(`"default";r=0;t=%s`, delaySeconds(s.wait)), s.delta())
	},
	RateLimitDraft07: func(h http.Header, s statement) time.Duration {
		return put(h, "RateLimit", fmt.Sprintf("limit=%d, remaining=0, reset=%s", s.limit.Units, delaySeconds(s.wait)), s.delta())
	},
	RateLimitFields: remaining("RateLimit-", func(s statement) (string, time.Duration) {
		return delaySeconds(s.wait), s.delta()
	}),

	XRateLimitDelta: remaining("X-RateLimit-", func(s statement) (string, time.Duration) {
		return delaySeconds(s.wait), s.delta()
	}),
	XRateLimitEpoch: remaining("X-RateLimit-", func(s statement) (string, time.Duration) {
		at := s.instant(time.Second)
		return strconv.FormatInt(at.Unix(), 10), at.Sub(s.now)
	}),
	XRateLimitEpochMs: remaining("X-RateLimit-", func(s statement) (string, time.Duration) {
		at := s.instant(time.Millisecond)
		return strconv.FormatInt(at.UnixMilli(), 10), at.Sub(s.now)
	}),
	XRateLimitDuration: remaining("X-RateLimit-", func(s statement) (string, time.Duration) {
		wait := times(ceil(s.wait, time.Millisecond), time.Millisecond)
		return wait.String(), wait
	}),
	XRateLimitISO: remaining("X-RateLimit-", func(s statement) (string, time.Duration) {
		at := s.instant(time.Second)
		return at.UTC().Format(time.RFC3339), at.Sub(s.now)
	}),
	XRateLimitAfter: func(h http.Header, s statement) time.Duration {
		h.Set("X-RateLimit-Limit", strconv.FormatInt(s.limit.Units, 10))
		h.Set("X-RateLimit-Remaining", "0")
		return put(h, "X-RateLimit-Reset-After", fraction(s.wait), times(ceil(s.wait, time.Millisecond), time.Millisecond))
	},
}

// set writes the hint into h and returns how long it tells the caller to stay away.
func (h Hint) set(header http.Header, s statement) time.Duration {
	if s.wait == 0 {
		s.wait = time.Second
	}
	return hints[h](header, s)
}

// delta is the wait in whole seconds.
func (s statement) delta() time.Duration {
	return times(ceil(s.wait, time.Second), time.Second)
}

// instant is when the wait ends, in whole units of the partner's clock.
func (s statement) instant(unit time.Duration) time.Time {
	at := s.now.Add(s.wait)
	if whole := at.Truncate(unit); whole.Before(at) {
		return whole.Add(unit)
	}
	return at
}

func put(h http.Header, name, value string, stated time.Duration) time.Duration {
	h.Set(name, value)
	return stated
}

func fixed(stated time.Duration, field ...string) func(http.Header, statement) time.Duration {
	return func(h http.Header, _ statement) time.Duration {
		if len(field) > 0 {
			h.Set(field[0], field[1])
		}
		return stated
	}
}

func date(layout string) func(http.Header, statement) time.Duration {
	return func(h http.Header, s statement) time.Duration {
		at := s.instant(time.Second)
		return put(h, "Retry-After", at.UTC().Format(layout), at.Sub(s.now))
	}
}

func remaining(prefix string, reset func(statement) (string, time.Duration)) func(http.Header, statement) time.Duration {
	return func(h http.Header, s statement) time.Duration {
		h.Set(prefix+"Limit", strconv.FormatInt(s.limit.Units, 10))
		h.Set(prefix+"Remaining", "0")
		value, stated := reset(s)
		return put(h, prefix+"Reset", value, stated)
	}
}

// fraction is wait in seconds, with a point even if it is whole.
func fraction(wait time.Duration) string {
	ms := ceil(wait, time.Millisecond)
	if ms%1000 == 0 {
		return fmt.Sprintf("%d.0", ms/1000)
	}
	return fmt.Sprintf("%d.%03d", ms/1000, ms%1000)
}

// delaySeconds is wait as a Retry-After: in whole seconds that are never too few,
// and at least 1, because 0 would invite the caller to try in a loop.
func delaySeconds(wait time.Duration) string {
	return strconv.FormatInt(max(1, ceil(wait, time.Second)), 10)
}

// ceil returns d in whole units, rounded up.
func ceil(d, unit time.Duration) int64 {
	n := d / unit
	if d%unit > 0 {
		n++
	}
	return int64(n)
}

// times is the inverse of ceil, or the longest Duration.
func times(n int64, unit time.Duration) time.Duration {
	if n > int64(endless/unit) {
		return endless
	}
	return time.Duration(n) * unit
}
