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
		s.Dry(&f.tags, m == left)
	case f.state != free:
	case was != free:
		l.advanceLocked(at)
		s.Join(&f.tags, c.cost, f.calls.units, f.weight, uint64(c.seq))
	case m == left:
		s.Succeed(&f.tags, c.cost, f.calls.units-c.cost, f.weight, c.mark, uint64(c.seq))
	default:
		s.Replace(&f.tags, c.cost, f.calls.units-c.cost, f.weight, uint64(c.seq))
	}
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
		c.mark = s.Mark(&f.tags)
		s.Grow(&f.tags, c.cost, f.weight)
	default:
		s.Shrink(&f.tags, c.cost, f.weight)
	}
}

// reopenedLocked is called when the first call leaves behind a gate.
func (l *line) reopenedLocked(cost int64) {
	if s := l.sharingLocked(); s != nil {
		s.Reopened(cost)
	}
}

// leftLocked notes in the sharing what a key's head, or a newcomer, has taken by leaving.
func (l *line) leftLocked(f *flow, cost int64) {
	if s := l.sharingLocked(); s != nil {
		s.Left(&f.tags, cost)
	}
}

// advanceLocked has the fluid sharing run on until t. It stands still while the line is held.
func (l *line) advanceLocked(t time.Time) {
	s, at := l.sharingLocked(), t.Sub(l.time.epoch)
	switch {
	case s == nil:
	case l.gate.paused:
		s.Advance(at, false)
	default:
		s.Advance(min(at, l.gate.openAt.Sub(l.time.epoch)), false)
		s.Advance(at, true)
	}
}

// repaceLocked tells the sharing how long a unit of the line takes.
func (l *line) repaceLocked() {
	if s := l.sharingLocked(); s != nil {
		s.SetRate(rateOf(l.pacer))
	}
}

// chargedLocked notes what has left without asking.
func (l *line) chargedLocked(f *flow, cost int64) {
	if s := l.sharingLocked(); s != nil {
		s.Charge(&f.tags, cost, f.weight)
	}
}

// correctedLocked notes what a call of a key has cost more, or less, than it was charged with.
func (l *line) correctedLocked(f *flow, more int64) {
	if more != 0 {
		l.chargedLocked(f, more)
	}
}

// passedByLocked notes a call that has left without waiting.
func (l *line) passedByLocked(f *flow, cost int64) {
	if s := l.sharingLocked(); s != nil {
		l.seq++
		s.Join(&f.tags, cost, cost, f.weight, uint64(l.seq))
		s.Left(&f.tags, cost)
		s.Dry(&f.tags, true)
	}
}

// weighLocked has the key weigh so much from its next call on, unless its weight was set by
// hand. 0 leaves it as it is. The sharing must have run on until now.
func (f *flow) weighLocked(weight int64) {
	if weight == 0 || weight == f.weight || f.weighted {
		return
	}
	before := f.weight
	f.weight = weight
	if c := f.calls.head; c != nil {
		f.line.keys.crowdLocked(f)
		f.line.keys.fair.Reweigh(&f.tags, before, weight, f.calls.units-c.cost)
	}
}

// settledLocked reports whether the line needs to know no more of a flow that has no calls.
// If not, it returns from when on that may be so.
func (f *flow) settledLocked(epoch time.Time, since time.Duration) (again time.Duration, ok bool) {
	l := f.line
	if f.own == nil {
		return 0, true
	}
	if bound := later(f.own.since, f.own.places.freedAt); l.lag > 0 && bound.After(l.since) {
		// A claim of the key may go back less than one of the line, until none goes back so far.
		if again := laterBy(bound.Sub(epoch), time.Duration(l.lag)); again > since {
			return again, false
		}
	}
	l.advanceLocked(epoch.Add(since))
	if s := l.sharingLocked(); s == nil || s.Passed(&f.tags) {
		return 0, true
	}
	again = laterBy(since, time.Second)
	if l.gcra != nil {
		again = max(since+1, l.gcra.TAT().Sub(epoch))
	}
	return again, false
}
