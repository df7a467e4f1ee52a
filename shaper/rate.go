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
func (s *Shaper) SetRate(r scheduler.Rate) error { return s.own.setRate(r) }

func (f *flow) setRate(r scheduler.Rate) error {
	l := f.lock()
	defer l.unlock()
	return f.setRateLocked(r, f.limits().share)
}

// Scale sets the part of the rate that is used, num/den of it, for as long as a partner
// allows less than agreed. It applies at once, as [Shaper.SetRate] does, which sets what
// it is a part of. 1/1 is all of it.
//
// A num below 1 or above den, and a Shaper whose rate cannot be set, is an error that
// changes nothing.
func (s *Shaper) Scale(num, den int64) error { return s.own.scale(num, den) }

func (f *flow) scale(num, den int64) error {
	if num < 1 || num > den {
		return fmt.Errorf("shaper: share %d/%d: must be above 0 and at most 1", num, den)
	}
	part := share{num, den}
	if num == den {
		part = whole
	}
	l := f.lock()
	defer l.unlock()
	return f.setRateLocked(f.limits().full, part)
}

// CanScale returns why [Shaper.Scale] cannot work, whatever it is asked for, or nil if it
// can: the schedule of a [NewFrom] may have no rate, or none that can be set.
func (s *Shaper) CanScale() error {
	l := s.own.lock()
	defer l.unlock()
	if _, err := l.rateSetter(l.full); err != nil {
		return err
	}
	if err := l.full.Validate(); err != nil {
		return fmt.Errorf("shaper: a %T tells no rate to take a share of: %w", l.pacer(), err)
	}
	return nil
}

func (l *limits) rateSetter(full scheduler.Rate) (scheduler.RateSetter, error) {
	pacer, ok := l.pacer().(scheduler.RateSetter)
	if !ok {
		return nil, fmt.Errorf("shaper: rate %v: the rate of a %T cannot be set", full, l.pacer())
	}
	return pacer, nil
}

// A share is the part of a rate that is used.
type share struct{ num, den int64 }

var whole = share{1, 1}

func (f *flow) setRateLocked(full scheduler.Rate, part share) error {
	l, limits := f.line, f.limits()
	pacer, err := limits.rateSetter(full)
	if err != nil {
		return err
	}
	r := full
	if part != whole {
		if r, err = full.Scale(part.num, part.den); err != nil {
			return fmt.Errorf("shaper: %w", err)
		}
	}
	before := rateOf(limits.pacer())
	now := l.arriveLocked(l.time.since()) // what is due already leaves at the old rate
	if limits.settle(now) && f.own == nil {
		l.lag.end() // a caller that was late before has not come back since
	}
	if limits.unsettled() > 0 {
		limits.passed(now) // nor is any call due before now, for the schedule
	}
	if err := pacer.SetRate(now, r); err != nil {
		return fmt.Errorf("shaper: %w", err)
	}
	terms := limits.mine()
	terms.full, terms.share = full, part
	if f.own == nil {
		l.unused.turn(before, r)
		l.repaceLocked()
	}
	f.dismissLateLocked(now)
	f.changedLocked(now)
	return nil
}

// dismissLateLocked refuses the waiting calls that a change of the key's limits has made too
// late for their deadlines: those of the key, and of all if the limits are those of the line.
func (f *flow) dismissLateLocked(now time.Time) {
	if f.own != nil {
		f.dismissOwnLateLocked(now)
		return
	}
	if f.line.dated > 0 { // there may be many keys
		f.line.eachLocked(func(f *flow) { f.dismissOwnLateLocked(now) })
	}
}

// dismissOwnLateLocked looks at the calls of the key. Those behind one that is refused move
// up.
func (f *flow) dismissOwnLateLocked(now time.Time) {
	var ahead int64
	for c := range f.calls.ordered {
		if f.calls.dated == 0 {
			return
		}
		if c.deadline == noDeadline {
			ahead += c.cost
		} else if due := f.foreseeLocked(now, ahead, c.cost); due.Sub(f.line.time.epoch) < c.deadline {
			ahead += c.cost
		} else {
			f.dismissLocked(c, now, ErrDeadline, due.Sub(now))
		}
	}
}
