package feedback

import (
	"net/http"
	"time"
)

// spent sums up those of a partner's limits that its response says are used up. A
// limit that is not used up says nothing here: its reset is no reason to wait.
type spent struct {
	any    bool          // at least one limit is used up
	wait   time.Duration // the longest wait among them
	stated bool          // one of them states a wait

	counted bool          // at least one limit is not used up, and states when it starts afresh
	low     int64         // the lowest count among those
	lowWait time.Duration // and its wait
}

// count enters a limit of which n units remain.
func (s *spent) count(n int64, wait time.Duration, ok bool) {
	if ok && n > 0 && (!s.counted || n < s.low || n == s.low && wait > s.lowWait) {
		s.counted, s.low, s.lowWait = true, n, wait
	}
}

// add enters a limit that is used up; ok is false if it states no valid wait.
func (s *spent) add(wait time.Duration, ok bool) {
	s.any = true
	if ok {
		s.wait, s.stated = max(s.wait, wait), true
	}
}

// families are the headers that count what remains, in the order of trust.
var families = [...]func(http.Header, time.Time) spent{rateLimit, rateLimitFields, vendorFields}

// exhausted reports whether any header counts 0 remaining requests, or less.
func exhausted(h http.Header, received time.Time) bool {
	for _, limits := range families {
		if limits(h, received).any {
			return true
		}
	}
	return false
}
