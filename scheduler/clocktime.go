package scheduler

import "time"

// What the clocks of a time zone show, as a length of time since midnight at the
// beginning of 1 January of the year 1: whole days, and the time of day beyond. It
// leaps when clocks are set, and so a reading may come twice or never.
type reading struct {
	days  int64
	clock time.Duration // from 0 to below a day
}

const (
	secondsPerDay = 24 * 60 * 60
	// unixDays is how many days the year 1970 began after the year 1.
	unixDays = 719162
)

// readingAt returns what clocks of the zone show at t.
func readingAt(t time.Time, zone *time.Location) reading {
	_, offset := t.In(zone).Zone()
	seconds := t.Unix() + int64(offset)
	days := floorDiv(seconds, secondsPerDay)
	clock := time.Duration(seconds-days*secondsPerDay)*time.Second + time.Duration(t.Nanosecond())
	return reading{days + unixDays, clock}
}

// offsetEnd returns an instant after t until which clocks of the zone are not set, or the
// zero Time if they never are again. They need not be set then.
func offsetEnd(t time.Time, zone *time.Location) time.Time {
	_, end := t.In(zone).ZoneBounds()
	if end.IsZero() {
		return end
	}
	// Where the rules of a zone go on beyond its table, ZoneBounds takes each year for one of
	// 365 days: on the last day of a leap year it returns the beginning of that day.
	for !end.After(t) {
		end = end.Add(day)
	}
	return end
}

// firstReaching returns the first instant at which clocks of the zone show r or more.
func firstReaching(r reading, zone *time.Location) time.Time {
	utc := time.Unix((r.days-unixDays)*secondsPerDay, 0).Add(r.clock).UTC() // if clocks showed UTC
	_, offset := utc.In(zone).Zone()
	// Clocks were never set by more than a day, so they do not show r yet.
	at := utc.Add(-time.Duration(offset)*time.Second - 26*time.Hour)
	for {
		_, offset := at.In(zone).Zone()
		end := offsetEnd(at, zone)
		if reached := later(at, utc.Add(-time.Duration(offset)*time.Second)); end.IsZero() || reached.Before(end) {
			return reached
		}
		at = end // where clocks are set
	}
}

// alike returns the instant of at with a reading of the monotonic clock if t has one.
func alike(t, at time.Time) time.Time { return t.Add(at.Sub(t)) }

// floorDiv returns a/b for b > 0, rounded down.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
