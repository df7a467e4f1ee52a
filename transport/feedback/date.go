package feedback

import (
	"strings"
	"time"
)

// httpDates are the forms of a date that name their zone, without it: that of RFC 9110,
// section 5.6.7 and of mail (RFC 5322, section 3.3), the same with a year of two digits
// (RFC 822), without a weekday, and that of RFC 850.
var httpDates = [...]string{
	"Mon, 2 Jan 2006 15:04:05",
	"Mon, 2 Jan 06 15:04:05",
	"2 Jan 2006 15:04:05",
	"2 Jan 06 15:04:05",
	"Monday, 02-Jan-06 15:04:05",
	"Mon, 02-Jan-2006 15:04:05",
}

// isoDates are RFC 3339 and what ISO 8601 allows beside it.
var isoDates = [...]string{
	time.RFC3339,
	"2006-01-02T15:04:05Z0700",
	"2006-01-02T15:04Z07:00",
}

// isoNoZone is the form without a zone. It is taken as UTC if that lies ahead: one that is
// past was a local time, and says nothing. (asctime has no zone either, but HTTP says
// that it is UTC.)
const isoNoZone = "2006-01-02T15:04:05"

// parseDate reads a date. now tells the century of a year of two digits.
//
// A zone is GMT, which some call UTC, or a number, which is the difference to it: what
// mail libraries write. What another name means cannot be told for sure, and [time.Parse]
// would take it for UTC, so that is no date. Nor is an HTTP-date without any.
func parseDate(s string, now time.Time) (time.Time, bool) {
	s, leap := cutLeapSecond(s)
	t, ok := parseHTTPDate(s, now)
	if !ok {
		t, ok = parseISODate(s, now)
	}
	return t.Add(leap), ok
}

func parseHTTPDate(s string, now time.Time) (time.Time, bool) {
	if t, err := time.Parse(time.ANSIC, s); err == nil {
		return t, true
	}
	i := strings.LastIndexByte(s, ' ')
	if i < 0 {
		return time.Time{}, false
	}
	zone, ok := parseZone(s[i+1:])
	if !ok {
		return time.Time{}, false
	}
	for _, layout := range httpDates {
		t, err := time.ParseInLocation(layout, s[:i], zone)
		if err != nil {
			continue
		}
		if !strings.Contains(layout, "2006") {
			t = nearestCentury(t, now)
		}
		return t, true
	}
	// As a database or a script prints it: the zone stands apart.
	return parseISO(isoNoZone, s[:i], zone)
}

func parseISODate(s string, now time.Time) (time.Time, bool) {
	for _, layout := range isoDates {
		if t, ok := parseISO(layout, s, time.UTC); ok {
			return t, true
		}
	}
	t, ok := parseISO(isoNoZone, s, time.UTC)
	return t, ok && t.After(now)
}

// parseISO allows a space in place of the T, as RFC 3339 does.
func parseISO(layout, s string, zone *time.Location) (time.Time, bool) {
	const date = len("2006-01-02")
	if len(s) > date && s[date] == ' ' {
		s = s[:date] + "T" + s[date+1:]
	}
	t, err := time.ParseInLocation(layout, s, zone)
	return t, err == nil
}

// parseZone reads GMT by any of its names, or a difference to it in hours and minutes.
func parseZone(s string) (*time.Location, bool) {
	switch s {
	case "GMT", "UTC", "UT", "Z":
		return time.UTC, true
	}
	for _, layout := range [...]string{"-0700", "-07:00"} {
		if t, err := time.Parse(layout, s); err == nil {
			_, offset := t.Zone()
			return time.FixedZone("", offset), true
		}
	}
	return nil, false
}

// cutLeapSecond replaces the second 60, which time does not know, by the one before it,
// and returns what is to be added to it.
func cutLeapSecond(s string) (string, time.Duration) {
	i := strings.Index(s, ":60")
	if i < 3 || s[i-3] != ':' || i+3 < len(s) && strings.IndexByte("0123456789:", s[i+3]) >= 0 {
		return s, 0
	}
	return s[:i] + ":59" + s[i+3:], time.Second
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
