package feedback

import (
	"net/http"
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

// dateLayouts are the three forms of an HTTP-date (RFC 9110, section 5.6.7), then RFC
// 3339 and what ISO 8601 allows beside it. A date without a zone is taken as UTC. The
// zone of an HTTP-date is GMT, which some call UTC; what another one means nobody knows
// for sure, and [time.Parse] would take the name of any for UTC, so it is no date.
var dateLayouts = [...]string{
	http.TimeFormat,
	"Mon, 02 Jan 2006 15:04:05 UTC",
	rfc850GMT,
	rfc850UTC,
	time.ANSIC,
	time.RFC3339,
	"2006-01-02T15:04:05Z0700",
	"2006-01-02T15:04Z07:00",
	"2006-01-02T15:04:05",
}

const (
	rfc850GMT = "Monday, 02-Jan-06 15:04:05 GMT"
	rfc850UTC = "Monday, 02-Jan-06 15:04:05 UTC"
)

// parseDate reads a date. now tells the century of an RFC 850 date.
func parseDate(s string, now time.Time) (time.Time, bool) {
	for _, layout := range dateLayouts {
		t, err := time.Parse(layout, s)
		if err != nil {
			continue
		}
		if layout == rfc850GMT || layout == rfc850UTC {
			t = nearestCentury(t, now)
		}
		return t, true
	}
	return time.Time{}, false
}

// nearestCentury gives a year of two digits its century: a date that would be more
// than 50 years in the future is of the past (RFC 9110, section 5.6.7).
func nearestCentury(t, now time.Time) time.Time {
	year := now.UTC().Year()
	t = t.AddDate(year-year%100+t.Year()%100-t.Year(), 0, 0)
	if t.After(now.AddDate(50, 0, 0)) {
		return t.AddDate(-100, 0, 0)
	}
	return t
}
