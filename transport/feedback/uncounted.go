package feedback

import (
	"net/http"
	"strings"
	"time"
)

// uncounted reads the resets that stand without a count of what remains. On an answer that
// is about a limit, what they tell is when the limit starts afresh. A count that is
// there says more: it is read elsewhere, and so is one that is malformed, since "1,000"
// are not none.
func uncounted(h http.Header, now time.Time) (wait time.Duration, ok bool) {
	for _, read := range [...]func(http.Header, time.Time) spent{rateLimitUncounted, fieldsUncounted, vendorUncounted} {
		if s := read(h, now); s.stated {
			return s.wait, true
		}
	}
	return 0, false
}

// rateLimitUncounted reads the members of RateLimit that have a time and no count.
func rateLimitUncounted(h http.Header, _ time.Time) (s spent) {
	eachLimit(h, func(remaining, reset any) {
		if remaining == nil {
			s.add(wholeSeconds(reset))
		}
	})
	return s
}

// fieldsUncounted reads the separate fields of the drafts before 07.
func fieldsUncounted(h http.Header, now time.Time) (s spent) {
	s.addUncounted(h, now, "Ratelimit-Reset", "Ratelimit-Remaining")
	return s
}

// vendorUncounted finds the fields that stem from no standard, as vendorFields does.
func vendorUncounted(h http.Header, now time.Time) (s spent) {
	const after = "X-Ratelimit-Reset-After" // a delay, and finer than the point in time
	if s.addUncounted(h, now, after, "X-Ratelimit-Remaining"); !s.stated {
		s.addUncounted(h, now, "X-Ratelimit-Reset", "X-Ratelimit-Remaining")
	}
	for name := range h {
		if limit, ok := strings.CutPrefix(name, "X-Ratelimit-Reset-"); ok && name != after {
			s.addUncounted(h, now, name, "X-Ratelimit-Remaining-"+limit)
		} else if limit, ok := strings.CutPrefix(name, "X-Rate-Limit-Reset"); ok && isSuffix(limit) {
			s.addUncounted(h, now, name, "X-Rate-Limit-Remaining"+limit)
		} else if limit, ok := strings.CutSuffix(name, "-Reset"); ok && strings.HasPrefix(limit, "Anthropic-Ratelimit-") {
			s.addUncounted(h, now, name, limit+"-Remaining")
		}
	}
	return s
}

// addUncounted enters what the field named reset says, if there is none named remaining.
func (s *spent) addUncounted(h http.Header, now time.Time, reset, remaining string) {
	for _, line := range h.Values(remaining) {
		if trim(line) != "" {
			return
		}
	}
	for value := range elements(field(h, reset)) {
		s.add(untilReset(value, now))
	}
}
