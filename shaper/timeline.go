package shaper

import (
	"time"

	"github.com/benbjohnson/clock"
)

// A timeline is how a Shaper reads time: as an epoch plus what has elapsed since,
// which on the system's clock is monotonic. Instants on it never go back.
type timeline struct {
	clock   clock.Clock // nil: the system's
	epoch   time.Time
	elapsed time.Duration // at the latest reading of clock
	skew    time.Duration // how far clock was set back, in all
}

func newTimeline(c clock.Clock) timeline {
	if c == nil {
		return timeline{epoch: time.Now()}
	}
	return timeline{clock: c, epoch: c.Now()}
}

// now returns the present.
func (l *timeline) now() time.Time {
	if l.clock == nil {
		return l.epoch.Add(time.Since(l.epoch))
	}
	elapsed := l.clock.Since(l.epoch) + l.skew
	if elapsed < l.elapsed {
		// Set back. Waiting until the clock has caught up would lock everybody
		// out for as long as the step; so no time has passed.
		l.skew += l.elapsed - elapsed
		elapsed = l.elapsed
	}
	l.elapsed = elapsed
	return l.epoch.Add(elapsed)
}

// at returns the instant on the line that a user's clock calls t, seen at now.
func (l *timeline) at(now, t time.Time) time.Time {
	if l.clock == nil {
		return now.Add(time.Until(t))
	}
	return now.Add(l.clock.Until(t))
}

// wall returns what the user's clock will show at an instant of the line, as seen
// at now.
func (l *timeline) wall(now, at time.Time) time.Time {
	if l.clock == nil {
		return time.Now().Add(at.Sub(now))
	}
	return l.clock.Now().Add(at.Sub(now))
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
