package shaper

import (
	"time"

	"github.com/benbjohnson/clock"
)

// A timebase is a clock and the epoch that instants are counted from. On the system's
// clock that is monotonic.
type timebase struct {
	clock clock.Clock // nil: the system's
	epoch time.Time
}

// newTimebase takes the tolerance of the schedules that are asked by it; see [newMonotonic].
func newTimebase(c clock.Clock, tolerance time.Duration) timebase {
	if c == nil {
		return timebase{epoch: time.Now()}
	}
	return timebase{clock: newMonotonic(c, tolerance), epoch: c.Now()}
}

// livesBy reports whether the clock is one of the user's.
func (b *timebase) livesBy(c clock.Clock) bool {
	m, ok := b.clock.(*monotonic)
	return ok && m.Clock == c
}

// since returns what has elapsed since the epoch. It needs no lock of a Shaper, which is
// worth it: reading a clock takes as long as all the rest of a decision, and others need
// not wait for it.
func (b *timebase) since() time.Duration {
	if b.clock == nil {
		return time.Since(b.epoch)
	}
	return b.clock.Since(b.epoch)
}

// A timeline is how a Shaper reads time. Instants on it never go back.
type timeline struct {
	timebase
	elapsed time.Duration // since the epoch, at the latest reading
}

// nowLocked returns the present, from what since returned. Others may have read later
// and come first; no time has passed since then.
func (l *timeline) nowLocked(since time.Duration) time.Time {
	l.elapsed = max(l.elapsed, since)
	return l.epoch.Add(l.elapsed)
}

// now reads the clock and returns the present.
func (l *timeline) now() time.Time { return l.nowLocked(l.since()) }

// at returns the instant on the line that a user's clock calls t. The two readings are in
// such an order that whatever comes between them makes it later, not earlier: a hold must
// not end too soon.
func (l *timeline) at(t time.Time) time.Time {
	if l.clock == nil {
		until := time.Until(t)
		return l.epoch.Add(l.since()).Add(until)
	}
	until := l.clock.Until(t)
	return l.epoch.Add(l.since()).Add(until)
}

// wall returns what the user's clock will show at an instant of the line, as seen
// at now.
func (l *timeline) wall(now, at time.Time) time.Time {
	if l.clock == nil {
		return time.Now().Add(at.Sub(now))
	}
	return l.clock.Now().Add(at.Sub(now))
}

// after calls f when the user's clock shows t, unless stop is called before.
func (l *timeline) after(t time.Time, f func()) (stop func() bool) {
	if l.clock == nil {
		return time.AfterFunc(time.Until(t), f).Stop
	}
	return l.clock.AfterFunc(l.clock.Until(t), f).Stop
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
