package scheduler

import (
	"fmt"
	"time"
)

// Allow uses any Scheduler as a meter: may n units leave now? If so, they are
// charged. If not, nothing changes and retryAfter tells how long to wait: the
// units are allowed after it and refused a nanosecond before it, as long as
// nothing else leaves meanwhile. Whether they are allowed later than that is
// another question, as the schedule may have closed times: ask again then.
//
// For a cost below 1 or above s.MaxCost(), which can never leave, retryAfter is
// the longest Duration. A schedule whose MaxCost is below 1, such as a zero value,
// is a programming error and panics.
func Allow(s Scheduler, now time.Time, n int64) (ok bool, retryAfter time.Duration) {
	most := s.MaxCost()
	if most < 1 {
		panic(fmt.Sprintf("scheduler: Allow: the MaxCost of a %T is %d: is it a zero value?", s, most))
	}
	if n < 1 || n > most {
		return false, never
	}
	next := s.Next(now, 0, n)
	if next.After(now) {
		return false, next.Sub(now)
	}
	s.Commit(now, now, n)
	return true, 0
}
