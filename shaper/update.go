package shaper

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// Update changes the schedules while calls wait: the limit of a window that a partner has told
// (its SetLimit), the capacity of a bucket (its Resize), or whatever a schedule of your own can.
// change is called with each of them, those within [scheduler.All] and [scheduler.PerCall] one
// by one; that of the rate comes first.
// What is due already leaves before, and what may leave by the change leaves at once. A waiting
// call that cannot make its deadline any more is refused with [ErrDeadline], and one of a cost
// that can leave no more with [ErrCost].
//
//	err := s.Update(func(limit scheduler.Scheduler) error {
//		if window, ok := limit.(*scheduler.SlidingLog); ok {
//			return window.SetLimit(time.Now(), 5)
//		}
//		return nil
//	})
//
// change runs under the lock of the Shaper, so it must not block, use the Shaper, or keep what
// it is given. For a rate [Shaper.SetRate] is as good. The first error of change is returned, and no
// further schedule is asked; what has changed until then has changed.
func (s *Shaper) Update(change func(scheduler.Scheduler) error) error { return s.own.update(change) }

// Update is [Shaper.Update] for the limits of the key, which is remembered for good. The error
// may be about a new key that cannot be made.
func (g *Group[K]) Update(key K, change func(scheduler.Scheduler) error) error {
	return g.change(key, func(f *flow) error {
		f.keep()
		return f.update(change)
	})
}

// Update is [Group.Update] for the key.
func (k *Key[K]) Update(change func(scheduler.Scheduler) error) error {
	return k.in().Update(k.key, change)
}

func (f *flow) update(change func(scheduler.Scheduler) error) error {
	l := f.lock()
	defer l.unlock()
	limits := f.limits()
	now := l.arriveLocked(l.time.since()) // what is due already leaves by the limits as they were
	before := rateOf(limits.pacer())
	defer func() { // a function of the user's may panic
		terms := limits.mine()
		terms.tolerance = toleranceOf(limits.sched)
		if r := rateOf(limits.pacer()); r != before {
			terms.full, terms.share = r, whole
			if f.own == nil {
				l.unused.turn(before, r)
				l.repaceLocked()
			}
		}
		f.dismissCostlyLocked(now)
		f.dismissLateLocked(now)
		f.changedLocked(now)
	}()
	for _, limit := range limits.schedules() {
		if err := change(limit); err != nil {
			return fmt.Errorf("shaper: %w", err)
		}
	}
	return nil
}

// dismissCostlyLocked refuses the waiting calls that a change of the key's limits never lets
// leave: those of the key, and of all if the limits are those of the line.
func (f *flow) dismissCostlyLocked(now time.Time) {
	most := f.limits().sched.MaxCost()
	dismiss := func(f *flow) {
		for c := range f.calls.ordered {
			if c.cost > most {
				f.dismissLocked(c, now, ErrCost, 0)
			}
		}
	}
	if f.own != nil {
		dismiss(f)
		return
	}
	f.line.eachLocked(dismiss)
}

// SetUsed says how many units are in use, by the partner's own count: of a window those that
// left in the current one, of a rate with a burst, or a bucket, those that are owed. Where that
// is more than what was counted here the difference is charged, and where it is less it is given
// back, exactly; see [scheduler.UsedSetter]. Calls that wait leave by that at once, or later. One
// that cannot make its deadline any more is refused with [ErrDeadline]. Shares and counts of calls
// are as they were: what the difference was used for is not known.
//
// Only a GCRA that is not unlimited, a bucket and a [scheduler.FixedWindow] can count so. A Shaper
// of which no limit can, or more than one, is an error that changes nothing, as is a count below 0:
// for one of several use [Shaper.Update].
func (s *Shaper) SetUsed(units int) error { return s.own.setUsed(int64(units)) }

// SetUsed is [Shaper.SetUsed] for the limits of the key. The error may be about a new key that
// cannot be made.
func (g *Group[K]) SetUsed(key K, units int) error {
	return g.change(key, func(f *flow) error { return f.setUsed(int64(units)) })
}

// SetUsed is [Group.SetUsed] for the key.
func (k *Key[K]) SetUsed(units int) error { return k.in().SetUsed(k.key, units) }

func (f *flow) setUsed(units int64) error {
	l := f.lock()
	defer l.unlock()
	limits := f.limits()
	counting, err := limits.counting()
	if err != nil {
		return err
	}
	now := l.arriveLocked(l.time.since()) // what is due already leaves by our own count
	if err := counting.SetUsed(now, units); err != nil {
		return fmt.Errorf("shaper: %w", err)
	}
	limits.passed(now)
	f.dismissLateLocked(now)
	f.changedLocked(now)
	return nil
}

// counting returns the one limit that can be told what is in use.
func (l *limits) counting() (found scheduler.UsedSetter, err error) {
	for _, limit := range l.schedules() {
		u, ok := limit.(scheduler.UsedSetter)
		switch {
		case !ok || rateOf(limit) == scheduler.Unlimited:
		case found != nil:
			return nil, errors.New("shaper: several limits count what is in use: use Update for one")
		default:
			found = u
		}
	}
	if found == nil {
		return nil, fmt.Errorf("shaper: no limit counts what is in use: %T: %w", l.sched, errors.ErrUnsupported)
	}
	return found, nil
}
