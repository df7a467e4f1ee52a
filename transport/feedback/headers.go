package feedback

import (
	"net/http"
	"time"
)

// ReadHeaders returns the time for which the headers of a response ask to stay away,
// counted from when it was received. ok is false if they state none that is valid;
// otherwise wait is in [0, max], and capped tells that more than max was stated. A
// negative max counts as 0. See the package for the headers and for the order in
// which they are trusted.
//
// A delay counts from when the response was received, as RFC 9110, section 10.2.3 has it,
// and a point in time from its Date: out of a cache, which an Age may tell, both come out
// too long rather than too short.
//
// Points in time are measured against the response's Date, which comes from the same
// clock, so that it does not matter how wrong the local one is; against received if
// Date is missing or malformed. A point in time that is past is a wait of 0.
//
// Of several values of one field the longest valid wait stands; so it does of several
// limits that are used up. Numbers that are negative, not finite or malformed count
// as absent, and the next header in the order is asked. "120, 60" are two values; with a
// comma right between digits, as in "1,000", a whole field counts as absent. Numbers that
// are too large for any type are above max, as they say.
func ReadHeaders(h http.Header, received time.Time, max time.Duration) (wait time.Duration, capped, ok bool) {
	return readHeaders(h, received, max, false)
}

func readHeaders(h http.Header, received time.Time, max time.Duration, epoch bool) (wait time.Duration, capped, ok bool) {
	wait, ok = stated(h, serverTime(h, received), epoch)
	if !ok {
		return 0, false, false
	}
	wait, capped = bound(wait, max)
	return wait, capped, true
}

// stated goes down the order of trust.
func stated(h http.Header, now time.Time, epoch bool) (time.Duration, bool) {
	if wait, ok := retryAfterMillis(h); ok {
		return wait, true
	}
	if wait, ok := retryAfter(h, now, epoch); ok {
		return wait, true
	}
	for _, limits := range families {
		if s := limits(h, now); s.stated {
			return s.wait, true
		}
	}
	return 0, false
}

// serverTime is when the partner sent the response, by its own clock.
func serverTime(h http.Header, received time.Time) time.Time {
	for line := range elements(field(h, "Date")) {
		if t, ok := parseDate(line, received); ok {
			return t
		}
	}
	return received
}
