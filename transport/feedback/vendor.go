package feedback

import (
	"math"
	"net/http"
	"strings"
	"time"
)

// vendorFields reads the fields that stem from no standard: a count of what remains
// and when it starts afresh, for one limit or, with the name of a limit at the end or
// in the middle, for several. They are found by their names, since partners add
// limits; names of any other spelling than the canonical one don't come from
// net/http.
func vendorFields(h http.Header, now time.Time) (s spent) {
	for name := range h {
		if limit, ok := strings.CutPrefix(name, "X-Ratelimit-Remaining"); ok && isSuffix(limit) {
			if limit == "" && s.addPair(h, now, name, "X-Ratelimit-Reset-After") {
				continue // a delay, and finer than the point in time that goes with it
			}
			s.addPair(h, now, name, "X-Ratelimit-Reset"+limit)
		} else if limit, ok := strings.CutPrefix(name, "X-Rate-Limit-Remaining"); ok && isSuffix(limit) {
			s.addPair(h, now, name, "X-Rate-Limit-Reset"+limit)
		} else if limit, ok := strings.CutSuffix(name, "-Remaining"); ok && strings.HasPrefix(limit, "Anthropic-Ratelimit-") {
			s.addPair(h, now, name, limit+"-Reset")
		}
	}
	s.addHubSpot(h)
	return s
}

func isSuffix(limit string) bool { return limit == "" || limit[0] == '-' }

// addPair enters the limits of which the field named remaining counts 0 or less, with the
// wait until what the field named reset says. Values at the same place belong
// together; if there are not as many resets as counts, the longest goes with all. It
// reports whether it entered a wait.
func (s *spent) addPair(h http.Header, now time.Time, remaining, reset string) (stated bool) {
	var used []bool
	none, low := true, int64(math.MaxInt64)
	for value := range elements(field(h, remaining)) {
		isSpent := spentCount(value)
		used = append(used, isSpent)
		none = none && !isSpent
		if d, ok := parseDecimal(value); ok {
			low = min(low, d.whole)
		}
	}
	var all, own spent
	i := 0
	for value := range elements(field(h, reset)) {
		wait, ok := untilReset(value, now)
		all.add(wait, ok)
		if i < len(used) && used[i] {
			own.add(wait, ok)
		}
		i++
	}
	s.count(low, all.wait, all.stated && low < math.MaxInt64)
	if none {
		return false
	}
	if i != len(used) {
		own = all
	}
	s.add(own.wait, own.stated)
	return own.stated
}

// spentCount reports whether a count says that nothing remains: 0, which some partners write
// as 0.0, or less, if a partner counts on in what it refuses.
func spentCount(s string) bool {
	s, negative := strings.CutPrefix(s, "-")
	d, ok := parseDecimal(s)
	return ok && (negative || d.isZero())
}

// addHubSpot reads the fields of HubSpot. What they count is a rolling interval, so
// that its whole length is the longest time that it takes. The daily limit starts
// afresh at midnight by the clock of the account, which no field tells.
func (s *spent) addHubSpot(h http.Header) {
	const prefix = "X-Hubspot-Ratelimit-"
	if anySpent(h, prefix+"Daily-Remaining") {
		s.add(0, false)
	}
	var interval spent
	for value := range elements(field(h, prefix+"Interval-Milliseconds")) {
		if d, ok := parseDecimal(value); ok {
			interval.add(d.of(time.Millisecond), true)
		}
	}
	if anySpent(h, prefix+"Remaining") {
		s.add(interval.wait, interval.stated)
	} else if d, ok := parseDecimal(trim(h.Get(prefix + "Remaining"))); ok {
		s.count(d.whole, interval.wait, interval.stated)
	}
}

func anySpent(h http.Header, name string) bool {
	for value := range elements(field(h, name)) {
		if spentCount(value) {
			return true
		}
	}
	return false
}
