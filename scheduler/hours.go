package scheduler

import (
	"errors"
	"fmt"
	"time"
)

// Hours lets units leave in the open hours of each day, as many as will: it charges
// nothing. Keep it beside a limit with [All] or shaper.WithLimits.
//
// Use it for quiet hours, or for a partner that is open from 09:00 to 17:30. Open is an
// instant at which the clocks of the zone show a time of day from the first one on and
// before the second one; if the second is not above the first, the hours go over
// midnight, and 22:00 to 06:00 is open by night. Nothing leaves at the closing time
// itself.
//
// Only what clocks show counts. So hours that clocks skip when they are set forward are
// missing on that day, and all of them if all are skipped; hours that come twice when
// they are set back are open twice. A zone whose clocks skip midnight, or a whole date,
// needs no rule of its own.
//
// Its Next is exact for any ahead. Memory: one instant. Its worst burst is that of the
// limit beside it, plus all that has waited for the opening, if that limit saves up.
//
// Hours is not safe for concurrent use.
type Hours struct {
	zone     *time.Location
	from, to time.Duration

	seen time.Time
}

// NewHours returns a schedule that is open from one time of day to another, each a time
// since midnight as clocks in the location show it. It refuses a nil location, a from
// that is not from 0 to below 24 hours, a to that is not from 0 to 24 hours, and two that
// are equal: for the whole day state 0 and 24 hours.
func NewHours(location *time.Location, from, to time.Duration) (*Hours, error) {
	h := &Hours{zone: location, from: from, to: to}
	if err := h.validate(); err != nil {
		return nil, err
	}
	return h, nil
}

func (h *Hours) validate() error {
	switch {
	case h.zone == nil:
		return errors.New("scheduler: location nil: must be a time zone")
	case h.from < 0 || h.from >= day:
		return fmt.Errorf("scheduler: hours from %v: must be from 0 to below 24h", h.from)
	case h.to < 0 || h.to > day:
		return fmt.Errorf("scheduler: hours to %v: must be from 0 to 24h", h.to)
	case h.from == h.to:
		return fmt.Errorf("scheduler: hours from %v to %v: must differ", h.from, h.to)
	}
	return nil
}

// MaxCost returns the largest int64: every cost leaves.
func (h *Hours) MaxCost() int64 {
	if h.zone == nil {
		return 0
	}
	return maxInt64
}

// Next implements [Scheduler].
func (h *Hours) Next(t time.Time, ahead, n int64) time.Time {
	mustBeMade(h.zone != nil, "Hours")
	t = later(t, h.seen)
	return alike(t, h.opening(t))
}

// Commit implements [Scheduler]. It charges nothing.
func (h *Hours) Commit(due, left time.Time, n int64) {
	mustBeMade(h.zone != nil, "Hours")
	h.seen = later(left, h.seen)
}

// opening returns the first open instant that is not before t.
func (h *Hours) opening(t time.Time) time.Time {
	for {
		clock := readingAt(t, h.zone).clock
		if h.open(clock) {
			return t
		}
		wait := h.from - clock
		if wait < 0 {
			wait += day
		}
		// Unless clocks are set before that. What they show then is looked at anew.
		end := offsetEnd(t, h.zone)
		if at := t.Add(wait); end.IsZero() || at.Before(end) {
			return at
		}
		t = end
	}
}

// open reports whether a time of day is open.
func (h *Hours) open(clock time.Duration) bool {
	if h.from < h.to {
		return h.from <= clock && clock < h.to
	}
	return h.from <= clock || clock < h.to
}
