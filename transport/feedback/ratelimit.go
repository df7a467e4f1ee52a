package feedback

import (
	"net/http"
	"time"

	"github.com/dunglas/httpsfv"
)

// rateLimit reads the field RateLimit: as the List of
// draft-ietf-httpapi-ratelimit-headers-10, and otherwise as the Dictionary of draft
// 07. Neither can be mistaken for the other where it counts. Malformed it says
// nothing, and so does a member that is not of the form.
func rateLimit(h http.Header, _ time.Time) (s spent) {
	eachLimit(h, func(remaining, reset any) {
		wait, ok := wholeSeconds(reset)
		if n, _ := remaining.(int64); n > 0 {
			s.count(n, wait, ok)
		} else if nothing(remaining) {
			s.add(wait, ok)
		}
	})
	return s
}

// eachLimit calls f with the count and the time of every member of the field RateLimit,
// nil for what a member does not have.
func eachLimit(h http.Header, f func(remaining, reset any)) {
	lines := field(h, "RateLimit")
	if len(lines) == 0 {
		return
	}
	if list, err := httpsfv.UnmarshalList(lines); err == nil {
		for _, member := range list {
			// One policy's service limit: "name";r=remaining;t=seconds.
			if item, ok := member.(httpsfv.Item); ok && item.Params != nil {
				remaining, _ := item.Params.Get("r")
				reset, _ := item.Params.Get("t")
				f(remaining, reset)
			}
		}
		return
	}
	if dict, err := httpsfv.UnmarshalDictionary(lines); err == nil {
		f(value(dict, "remaining"), value(dict, "reset")) // limit=n, remaining=n, reset=seconds
	}
}

// nothing reports whether a count of what remains is 0 or less.
func nothing(remaining any) bool {
	n, ok := remaining.(int64)
	return ok && n <= 0
}

func value(dict *httpsfv.Dictionary, key string) any {
	member, _ := dict.Get(key)
	item, _ := member.(httpsfv.Item)
	return item.Value
}

// wholeSeconds takes an Integer, which has 15 digits at most. Anything else, a
// Decimal included, is not of the form.
func wholeSeconds(v any) (time.Duration, bool) {
	n, ok := v.(int64)
	if !ok || n < 0 {
		return 0, false
	}
	return time.Duration(times(n, int64(time.Second))), true
}

// rateLimitFields reads the separate fields of the drafts before 07.
func rateLimitFields(h http.Header, now time.Time) (s spent) {
	s.addPair(h, now, "Ratelimit-Remaining", "Ratelimit-Reset")
	return s
}
