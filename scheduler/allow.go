package scheduler

import "time"

// Allow uses any Scheduler as a meter: may n units leave now? If so, they are
// charged. If not, nothing changes and retryAfter tells how long to wait: the
// units are allowed after it and refused a nanosecond before it, as long as
// nobody else leaves meanwhile.
//
// For a cost below 1 or above s.MaxCost(), which can never leave, retryAfter is
// the longest Duration.
func Allow(s Scheduler, now time.Time, n int64) (ok bool, retryAfter time.Duration) {
	if n < 1 || n > s.MaxCost() {
		return false, never
	}
	next := s.Next(now, 0, n)
	if next.After(now) {
		return false, next.Sub(now)
	}
	s.Commit(now, now, n)
	return true, 0
}
