package shaper

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// SetRate changes the rate at once, also for the calls that wait. Units that are
// owed stay owed and their time is recomputed. A waiting call that cannot leave
// before the deadline of its context any more is refused at once, with
// [ErrDeadline]. A share set by [Shaper.Scale] stays.
//
// An invalid rate, or a Shaper made by [NewFrom] of a schedule whose rate cannot
// be set, is an error that changes nothing.
func (s *Shaper) SetRate(r scheduler.Rate) error {
	s.lock()
	defer s.unlock()
	return s.setRateLocked(r, s.share)
}

// Scale sets the part of the rate that is used, num/den of it, for as long as a partner
// allows less than agreed. It applies at once, as [Shaper.SetRate] does, which sets what
// it is a part of. 1/1 is all of it.
//
// A num below 1 or above den, and a Shaper whose rate cannot be set, is an error that
// changes nothing.
func (s *Shaper) Scale(num, den int64) error {
	if num < 1 || num > den {
		return fmt.Errorf("shaper: share %d/%d: must be above 0 and at most 1", num, den)
	}
	part := share{num, den}
	if num == den {
		part = whole
	}
	s.lock()
	defer s.unlock()
	return s.setRateLocked(s.full, part)
}

// CanScale returns why [Shaper.Scale] cannot work, whatever it is asked for, or nil if it
// can: the schedule of a [NewFrom] may have no rate, or none that can be set.
func (s *Shaper) CanScale() error {
	s.lock()
	defer s.unlock()
	if _, err := s.rateSetterLocked(s.full); err != nil {
		return err
	}
	if err := s.full.Validate(); err != nil {
		return fmt.Errorf("shaper: a %T tells no rate to take a share of: %w", s.pacer, err)
	}
	return nil
}

func (s *Shaper) rateSetterLocked(full scheduler.Rate) (scheduler.RateSetter, error) {
	pacer, ok := s.pacer.(scheduler.RateSetter)
	if !ok {
		return nil, fmt.Errorf("shaper: rate %v: the rate of a %T cannot be set", full, s.pacer)
	}
	return pacer, nil
}

// A share is the part of a rate that is used.
type share struct{ num, den int64 }

var whole = share{1, 1}

func (s *Shaper) setRateLocked(full scheduler.Rate, part share) error {
	pacer, err := s.rateSetterLocked(full)
	if err != nil {
		return err
	}
	r := full
	if part != whole {
		if r, err = full.Scale(part.num, part.den); err != nil {
			return fmt.Errorf("shaper: %w", err)
		}
	}
	before := rateOf(s.pacer)
	now := s.arriveLocked(s.time.since()) // what is due already leaves at the old rate
	s.settleLocked(now)
	if err := pacer.SetRate(now, r); err != nil {
		return fmt.Errorf("shaper: %w", err)
	}
	s.unused.turn(before, r)
	s.full, s.share = full, part
	s.dismissLateLocked(now)
	s.dispatchLocked(now)
	return nil
}

// dismissLateLocked refuses the waiting calls that a change has made too late for
// their deadlines. Those behind them move up.
func (s *Shaper) dismissLateLocked(now time.Time) {
	var ahead int64
	for c := range s.line.ordered {
		if s.line.dated == 0 {
			return
		}
		if c.deadline == noDeadline {
			ahead += c.cost
		} else if due := s.dueLocked(now, ahead, c.cost); due.Before(s.time.epoch.Add(c.deadline)) {
			ahead += c.cost
		} else {
			s.dismissLocked(c, now, ErrDeadline, due.Sub(now))
		}
	}
}
