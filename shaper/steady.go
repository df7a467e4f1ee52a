package shaper

import (
	"sync"
	"time"

	"github.com/benbjohnson/clock"
)

// steady is a clock of the user's whose elapsed time never goes back, for everybody who
// reads it: a step back counts as no time passed.
type steady struct {
	clock.Clock

	mu      sync.Mutex
	elapsed time.Duration // at the latest reading
	skew    time.Duration // how far the clock was set back, in all
}

// Since returns the time since an epoch, which must always be the same one.
func (s *steady) Since(epoch time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	elapsed := s.Clock.Since(epoch) + s.skew
	if elapsed < s.elapsed {
		// Waiting until the clock has caught up would lock everybody out for as
		// long as the step; so no time has passed.
		s.skew += s.elapsed - elapsed
		elapsed = s.elapsed
	}
	s.elapsed = elapsed
	return elapsed
}
