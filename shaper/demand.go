package shaper

import (
	"errors"
	"io"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// refusal returns why the schedules let nothing leave for an unknown time, or nil.
func (l *limits) refusal() error {
	if l.gcra != nil {
		return nil
	}
	if r, ok := l.sched.(scheduler.Refuser); ok {
		return r.Refusal()
	}
	return nil
}

// refusalLocked returns why no call of the key may leave or wait, or nil.
func (f *flow) refusalLocked() error {
	if f.own != nil {
		if err := f.own.refusal(); err != nil {
			return err
		}
	}
	return f.line.limits.refusal()
}

// notified is for a schedule of the line whose answers have changed by themselves.
func (l *line) notified() {
	l.lock()
	defer l.unlock()
	now := l.time.now()
	l.passLocked(now)
	if err := l.limits.refusal(); err != nil {
		l.eachLocked(func(f *flow) { f.dismissAllLocked(now, err) })
	}
	for f := l.chooseLocked(now); f != nil && f.dismissLateHeadLocked(now); f = l.chooseLocked(now) {
	}
	l.dispatchLocked(now)
}

// notified is for a schedule of the key whose answers have changed by themselves.
func (f *flow) notified() {
	l := f.lock()
	defer l.unlock()
	now := l.time.now()
	l.passLocked(now)
	if err := f.own.refusal(); err != nil {
		f.dismissAllLocked(now, err)
	}
	for f.dismissLateHeadLocked(now) {
	}
	f.changedLocked(now)
}

// dismissLateHeadLocked refuses the head of a key that cannot leave in time any more, and
// reports whether it has.
func (f *flow) dismissLateHeadLocked(now time.Time) bool {
	c := f.calls.head
	if c == nil || c.deadline == noDeadline {
		return false
	}
	due := f.foreseeLocked(now, 0, c.cost)
	if due.Sub(f.line.time.epoch) < c.deadline {
		return false
	}
	f.dismissLocked(c, now, ErrDeadline, due.Sub(now))
	return true
}

// mostDemand bounds how many keys, and units of them, are counted: no schedule gets as many ahead.
const mostDemand = 1024

// demandLocked tells the schedules of the line what waits, if they have to know. It is called
// whenever that may have changed.
func (l *line) demandLocked() {
	s, ok := l.sched.(scheduler.Demander)
	switch {
	case !ok:
	case l.head == nil || l.stand(l.head.calls.head.place):
		s.Demand(l.presentLocked(), 0, 0, time.Time{})
	default:
		c := l.head.calls.head
		s.Demand(l.head.earliestLocked(l.presentLocked(), c.place), l.freeUnitsLocked(), c.cost, l.deadlineLocked(c))
	}
}

// freeUnitsLocked returns the units that wait for nothing but the line, those of the head
// included, as far as they are counted. Of a key with limits of its own that is its first call.
func (l *line) freeUnitsLocked() int64 {
	if l.keys == nil {
		return l.units
	}
	units, keys := l.head.calls.head.cost, 0
	for f := range l.keys.crowd.Each {
		switch {
		case f.state != free:
		case f.own == nil:
			units += f.calls.units
		case f != l.head:
			units += f.calls.head.cost
		}
		if keys++; keys == mostDemand || units >= mostDemand {
			break
		}
	}
	return units
}

// demandLocked tells the schedules of the key what of it waits, if they have to know.
func (f *flow) demandLocked() {
	if f.own == nil || f.own.gcra != nil {
		return
	}
	s, ok := f.own.sched.(scheduler.Demander)
	c, now := f.calls.head, f.line.presentLocked()
	switch {
	case !ok:
	case c == nil || f.own.stand(c.place):
		s.Demand(now, 0, 0, time.Time{})
	default:
		s.Demand(f.own.earliest(now, c.place), f.calls.units, c.cost, f.line.deadlineLocked(c))
	}
}

// presentLocked returns the latest instant that the line has seen.
func (l *line) presentLocked() time.Time { return l.time.epoch.Add(l.time.elapsed) }

// deadlineLocked returns the deadline of a call, zero if it has none.
func (l *line) deadlineLocked(c *call) time.Time {
	if c.deadline == noDeadline {
		return time.Time{}
	}
	return l.time.epoch.Add(c.deadline)
}

// discard closes the schedules of the key, or of its line if it has none.
func (f *flow) discard() error {
	l := f.lock()
	defer l.unlock()
	return f.limits().discard()
}

// discard closes the schedules that can be closed: one that processes share hands back what it
// has got for the line.
func (l *limits) discard() error {
	var errs []error
	for _, s := range l.schedules() {
		if c, ok := s.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}
