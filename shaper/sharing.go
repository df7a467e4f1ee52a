package shaper

import (
	"time"

	"github.com/sluice-go/sluice/shaper/internal/fair"
)

// shareLocked puts a flow where it belongs in the fair sharing of the line. It became free at
// the given time, if it was not before.
func (l *line) shareLocked(f *flow, at time.Time, was keyState, m move) {
	s, c := l.keys.fair, f.calls.head
	switch {
	case f.state != free && was == free:
		s.Dry(f.shares(), m == left)
	case f.state != free:
	case was != free:
		if s.Before(at.Sub(l.time.epoch)) { // keys that become free at one instant share what is there then
			l.advanceLocked(at)
		}
		s.Join(f.shares(), c.cost, f.calls.units, f.weight, uint64(c.seq))
	case m == left:
		s.Succeed(f.shares(), c.cost, uint64(c.seq))
	default:
		s.Replace(f.shares(), c.cost, f.calls.units, uint64(c.seq))
	}
}

// shares returns where a key stands in the fair sharing of its line.
func (f *flow) shares() *fair.Flow[flow] {
	if f.tags == nil {
		f.tags = &fair.Flow[flow]{Owner: f}
	}
	return f.tags
}

// sharingLocked returns the sharing of a line, nil where no weights are set.
func (l *line) sharingLocked() *fair.Sharing[flow] {
	if l.keys == nil {
		return nil
	}
	return l.keys.fair
}

// behindLocked notes a call that has come, or gone, behind the head of its flow.
func (l *line) behindLocked(f *flow, c *call, came bool) {
	if l.keys == nil {
		return
	}
	l.keys.crowdLocked(f)
	f.demandLocked()
	switch s := l.keys.fair; {
	case s == nil || f.state != free:
	case came:
		s.Grow(f.shares(), c.cost)
	default:
		s.Shrink(f.shares(), c.cost)
	}
}

// reopenedLocked is called when the first call leaves behind a gate.
func (l *line) reopenedLocked(cost int64) {
	if s := l.sharingLocked(); s != nil {
		s.Reopened(cost)
	}
}

// leftLocked notes in the sharing what a key's head has taken by leaving.
func (l *line) leftLocked(f *flow) {
	if s := l.sharingLocked(); s != nil {
		s.Left(f.shares())
	}
}

// advanceLocked has the fluid sharing run on until t. It stands still while the line is held.
func (l *line) advanceLocked(t time.Time) {
	s := l.sharingLocked()
	if s == nil {
		return
	}
	at, opens := t.Sub(l.time.epoch), l.gate.openAt.Sub(l.time.epoch)
	if l.gate.paused {
		s.Stand(at)
		return
	}
	if s.Before(opens) {
		s.Stand(min(at, opens))
	}
	s.Advance(at)
}

// repaceLocked tells the sharing how long a unit of the line takes.
func (l *line) repaceLocked() {
	if s := l.sharingLocked(); s != nil {
		s.SetRate(rateOf(l.pacer()))
	}
}

// chargedLocked notes what has left without asking.
func (l *line) chargedLocked(f *flow, cost int64) {
	if s := l.sharingLocked(); s != nil {
		s.Charge(f.shares(), cost, f.weight)
	}
}

// correctedLocked notes what a call of a key has cost more, or less, than it was charged with. All
// was to be paid at the given time before. As far as the line has run dry since the call left, that
// makes no difference any more, to the shares no more than to the line.
func (l *line) correctedLocked(f *flow, more int64, paid, now time.Time) {
	s := l.sharingLocked()
	if s == nil || more == 0 {
		return
	}
	units := fair.PartsOf(more)
	if l.pacing != nil && l.pacing.For(1) > 0 {
		before, after := paid, l.paidLocked()
		if more > 0 {
			before, after = later(before, now), later(after, now)
		}
		units = min(units, s.Worth(after.Sub(before).Abs()))
	}
	if more > 0 {
		s.Debit(f.shares(), units, f.weight)
	} else {
		s.Refund(f.shares(), units)
	}
}

// paidLocked returns when all that has left is paid for, by the rate of the line.
func (l *line) paidLocked() time.Time {
	if l.pacing == nil {
		return time.Time{}
	}
	return l.pacing.TAT()
}

// passedByLocked notes a call that has left without waiting.
func (l *line) passedByLocked(f *flow, cost int64) {
	if s := l.sharingLocked(); s != nil {
		l.seq++
		s.Join(f.shares(), cost, cost, f.weight, uint64(l.seq))
		s.Left(f.shares())
		s.Dry(f.shares(), true)
	}
}

// weighLocked has the key weigh so much from its next call on, unless its weight was set by
// hand. 0 leaves it as it is. The sharing must have run on until now.
func (f *flow) weighLocked(weight int64) {
	if weight == 0 || weight == f.weight || f.weighted {
		return
	}
	f.weight = weight
	if f.calls.head != nil {
		f.line.keys.crowdLocked(f)
		f.line.keys.fair.Reweigh(f.shares(), weight)
	}
}

// settledLocked reports whether the line needs to know no more of a flow that has no calls.
// If not, it returns from when on that may be so.
func (f *flow) settledLocked(epoch time.Time, since time.Duration) (again time.Duration, ok bool) {
	l := f.line
	if f.own == nil {
		return 0, true
	}
	if bound := later(later(f.own.since, f.own.places.freedAt), f.own.gate.openAt); l.lag > 0 && bound.After(l.since) {
		// A claim of the key may go back less than one of the line, until none goes back so far.
		if again := laterBy(bound.Sub(epoch), time.Duration(l.lag)); again > since {
			return again, false
		}
	}
	l.advanceLocked(epoch.Add(since))
	if s := l.sharingLocked(); s == nil || f.tags == nil || s.Passed(f.tags) {
		return 0, true
	}
	if l.gcra != nil {
		if paid := l.gcra.TAT().Sub(epoch); paid > since {
			return paid, false
		}
	}
	return laterBy(since, time.Second), false // the fluid is behind: it has served calls in vain
}
