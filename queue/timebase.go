package queue

import (
	"time"

	"github.com/benbjohnson/clock"
)

// A timebase is the clock of a line, and an instant to count from.
type timebase struct {
	clock clock.Clock
	epoch time.Time
}

func newTimebase(c clock.Clock) timebase { return timebase{c, c.Now()} }

func (b *timebase) now() time.Duration { return b.clock.Since(b.epoch) }

func (b *timebase) at(since time.Duration) time.Time { return b.epoch.Add(since) }

// since returns the time from the epoch to t.
func (b *timebase) since(t time.Time, now time.Duration) time.Duration {
	return after(now, b.clock.Until(t))
}

// after returns d after now, which is not negative, or never if that is more than can be told.
func after(now, d time.Duration) time.Duration {
	if d > never-now {
		return never
	}
	return now + d
}
