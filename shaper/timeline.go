package shaper

import (
	"time"

	"github.com/benbjohnson/clock"
)

// A timeline is how a Shaper reads time: as an epoch plus what has elapsed since,
// which on the system's clock is monotonic. Instants on it never go back.
type timeline struct {
	clock clock.Clock // nil: the system's
	epoch time.Time

	elapsed time.Duration // since the epoch, at the latest reading
	skew    time.Duration // how far clock was set back, in all
}

func newTimeline(c clock.Clock) timeline {
	if c == nil {
		return timeline{epoch: time.Now()}
	}
	return timeline{clock: c, epoch: c.Now()}
}

// read reads the system's clock. It needs no lock, which is worth it: reading takes
// as long as all the rest of a decision, and others need not wait for it.
func (l *timeline) read() time.Duration {
	if l.clock == nil {
		return time.Since(l.epoch)
	}
	return 0
}

// nowLocked returns the present, from what read returned. Others may have read later
// and come first; no time has passed since then.
func (l *timeline) nowLocked(read time.Duration) time.Time {
	if l.clock == nil {
		l.elapsed = max(l.elapsed, read)
		return l.epoch.Add(l.elapsed)
	}
	// A clock of the user's is read under the lock, so that one that was set back
	// can be told from readings that have overtaken one another.
	elapsed := l.clock.Since(l.epoch) + l.skew
	if elapsed < l.elapsed {
		// Waiting until the clock has caught up would lock everybody out for as
		// long as the step; so no time has passed.
		l.skew += l.elapsed - elapsed
		elapsed = l.elapsed
	}
	l.elapsed = elapsed
	return l.epoch.Add(elapsed)
}

// now reads the clock and returns the present.
func (l *timeline) now() time.Time { return l.nowLocked(l.read()) }

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
