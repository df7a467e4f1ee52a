package scheduler_test

import (
	"time"

	"github.com/sluice-go/sluice/scheduler/schedulertest"
)

// The limits as partners tell them, from the log of everything that left. They are
// slow and share no code with the schedules.

type definition func(left []schedulertest.Departure, at time.Time, n int64) bool

// unless returns no definition if it does not apply.
func (d definition) unless(other bool) definition {
	if other {
		return nil
	}
	return d
}

// bucket: a bucket of the given size loses one unit every interval and must not
// overflow. A cost above the size needs it empty, and overflows it.
func bucket(size int64, interval time.Duration) definition {
	return func(left []schedulertest.Departure, at time.Time, n int64) bool {
		var level time.Duration // until the bucket is empty
		var last time.Time
		drain := func(to time.Time) {
			level = max(0, level-to.Sub(last))
			last = to
		}
		for _, d := range left {
			drain(d.At)
			level += time.Duration(d.N) * interval
		}
		drain(at)
		return level+time.Duration(min(n, size))*interval <= time.Duration(size)*interval
	}
}

// anyWindow: at most limit units in every half-open window.
func anyWindow(limit int64, window time.Duration) definition {
	return func(left []schedulertest.Departure, at time.Time, n int64) bool {
		for _, d := range left {
			if at.Sub(d.At) < window {
				n += d.N
			}
		}
		return n <= limit
	}
}

// ownWindow: at most limit units in each window, told apart by a number.
func ownWindow(limit int64, number func(time.Time) int) definition {
	return func(left []schedulertest.Departure, at time.Time, n int64) bool {
		for _, d := range left {
			if number(d.At) == number(at) {
				n += d.N
			}
		}
		return n <= limit
	}
}

// weighed: the units of the window before count for the part of it that a window
// which ends now still covers.
func weighed(limit int64, window time.Duration) definition {
	return func(left []schedulertest.Departure, at time.Time, n int64) bool {
		start := at.Truncate(window)
		var before int64
		for _, d := range left {
			switch {
			case !d.At.Before(start):
				n += d.N
			case !d.At.Before(start.Add(-window)):
				before += d.N
			}
		}
		covered := window - at.Sub(start)
		return before*int64(covered) <= (limit-n)*int64(window)
	}
}

// both: two limits at once.
func both(a, b definition) definition {
	return func(left []schedulertest.Departure, at time.Time, n int64) bool {
		return a(left, at, n) && b(left, at, n)
	}
}
