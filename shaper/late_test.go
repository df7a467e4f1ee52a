package shaper_test

import (
	"time"

	"github.com/benbjohnson/clock"
)

// lateClock is the clock of the bubble, but its timers fire late by what the
// function says.
func lateClock(by func() time.Duration) clock.Clock { return late{clock.New(), by} }

// lateOnce is the clock of the bubble, but the first timer that is set fires late.
func lateOnce(by time.Duration) clock.Clock {
	return lateClock(func() time.Duration {
		once := by
		by = 0
		return once
	})
}

type late struct {
	clock.Clock
	by func() time.Duration
}

func (l late) Timer(d time.Duration) *clock.Timer { return l.Clock.Timer(d + l.by()) }

func (l late) AfterFunc(d time.Duration, f func()) *clock.Timer {
	return l.Clock.AfterFunc(d+l.by(), f)
}
