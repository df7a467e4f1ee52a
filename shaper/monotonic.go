package shaper

import (
	"sync"
	"time"

	"github.com/benbjohnson/clock"
)

// A monotonic is a clock of the user's whose elapsed time never goes back, for every reader.
// What it makes of a step back depends on its length.
//
// A clock whose readings differ by a little, as it has two sources or rounds, steps back
// all the time. Such a step is held: elapsed time stands still until the clock has caught
// up. If it went on from there instead, each step forward would count as time that has
// passed.
//
// A clock that was set back would take as long as that to catch up, and lock all callers
// out meanwhile. So a longer step counts as no time passed.
type monotonic struct {
	clock.Clock
	slack time.Duration // steps back that are shorter are held

	mu      sync.Mutex
	elapsed time.Duration // as told, the latest
	read    time.Duration // at the latest reading, skew included: at most elapsed, and at least elapsed - slack
	skew    time.Duration // how far the clock was set back, in all
}

// newMonotonic returns a monotonic clock for schedules of the given tolerance: a wait until the
// clock has caught up is a lateness that they absorb. A tolerance of 0 is strict about
// departures and says nothing about the clock, so the default takes its place.
func newMonotonic(c clock.Clock, tolerance time.Duration) *monotonic {
	if tolerance == 0 {
		tolerance = defaultTolerance
	}
	return &monotonic{Clock: c, slack: tolerance}
}

// Since returns the time since an epoch, which must always be the same one.
func (s *monotonic) Since(epoch time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw := s.Clock.Since(epoch)
	read := raw + s.skew
	if s.read-read >= s.slack {
		read = s.read // no time has passed: the clock is as far behind as before the step
	}
	// Many short steps in a row must not add up to a long wait.
	read = max(read, s.elapsed-s.slack)
	s.skew, s.read = read-raw, read
	s.elapsed = max(s.elapsed, read)
	return s.elapsed
}
