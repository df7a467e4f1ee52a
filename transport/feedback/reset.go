package feedback

import (
	"strings"
	"time"
)

// How large a number must be to be a point in time and not a delay. 1e9 seconds are
// 32 years as a delay and the year 2001 as a point in time; 1e11 seconds are the year
// 5138, but as milliseconds the year 1973.
const (
	epochSeconds = 1e9
	epochMillis  = 1e11
)

// untilReset reads when a limit starts afresh and returns the wait until then, which
// is 0 if it is past. The forms that partners write are told apart by what they look
// like: seconds or milliseconds since 1970 or a delay in seconds by their magnitude,
// a duration as Go writes it ("6m0s"), a date.
func untilReset(s string, now time.Time) (time.Duration, bool) {
	if d, ok := parseDecimal(s); ok {
		switch {
		case d.whole >= epochMillis:
			return until(time.Unix(0, int64(d.of(time.Millisecond))), now), true
		case d.whole >= epochSeconds:
			return until(time.Unix(0, int64(d.of(time.Second))), now), true
		}
		return d.of(time.Second), true
	}
	if d, ok := parseDuration(s); ok {
		return d, true
	}
	if t, ok := parseDate(s, now); ok {
		return until(t, now), true
	}
	return 0, false
}

// until is how long it takes from now to t, saturated, and 0 if t is past.
func until(t, now time.Time) time.Duration { return max(t.Sub(now), 0) }

// parseDuration reads numbers with units, such as "1h2m3.5s", "12ms" or "20seconds". It is not
// [time.ParseDuration], which rounds fractions down and has no days.
func parseDuration(s string) (time.Duration, bool) {
	if s == "" {
		return 0, false
	}
	var sum int64
	for s != "" {
		end := strings.IndexFunc(s, func(c rune) bool { return c != '.' && (c < '0' || c > '9') })
		if end < 0 {
			return 0, false // a number without unit
		}
		n, ok := parseDecimal(s[:end])
		if !ok {
			return 0, false
		}
		s = s[end:]
		end = strings.IndexAny(s, ".0123456789")
		if end < 0 {
			end = len(s)
		}
		unit, ok := unitOf(s[:end])
		if !ok {
			return 0, false
		}
		s = s[end:]
		sum = plus(sum, int64(n.of(unit)))
	}
	return time.Duration(sum), true
}

func unitOf(s string) (time.Duration, bool) {
	switch s {
	case "ns":
		return time.Nanosecond, true
	case "us", "\u00b5s", "\u03bcs": // the micro sign and the Greek letter
		return time.Microsecond, true
	case "ms", "millisecond", "milliseconds":
		return time.Millisecond, true
	case "s", "sec", "secs", "second", "seconds":
		return time.Second, true
	case "m", "min", "mins", "minute", "minutes":
		return time.Minute, true
	case "h", "hour", "hours":
		return time.Hour, true
	case "d", "day", "days":
		return 24 * time.Hour, true
	}
	return 0, false
}
