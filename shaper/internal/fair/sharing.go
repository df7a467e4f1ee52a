// Package fair shares one limit among flows of calls, in proportion to their weights: earliest
// eligible virtual deadline first (Stoica and Abdel-Wahab, TR-95-22), which is WF2Q+ with the
// virtual time of the fluid system. It is pure: instants are arguments.
//
// Beside the line runs an ideal fluid system that serves all flows with a backlog at once. V,
// its virtual time, is what a flow of weight 1 has been served that always had one. Each call
// that is at the head of its flow has two tags: the S and F at which the fluid begins and ends
// to serve it. Of the heads that the fluid has begun with, the one goes next that it ends first.
//
// The fluid has the limit's rate and burst: V moves on as time passes, for as long as there are
// departures that it has not paid for, and by up to a burst at once. So it is never ahead of
// what may leave by more than a burst, however late calls leave.
package fair

import (
	"math/bits"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper/internal/pq"
)

// Tags are counted in parts of a unit per weight of 1. S and F are rounded up, V down.
const (
	unit = 1 << 28
	// most bounds costs, so that no tag overflows; one that is larger counts as so many units.
	most = 1 << 32
	// far is when all tags are counted anew.
	far = 1 << 60
)

// A Sharing is the virtual time and the flows that it knows. It pays for departures at once,
// until SetRate tells how long that takes.
type Sharing[O any] struct {
	v       int64
	pending int64 // service that is not in v yet, as it is less than one part for each in the sum
	sum     int64 // of the weights of the flows that the fluid serves
	tokens  int64 // service that stands unused, in parts of units
	burst   int64 // the most of it
	owed    int64 // what has left and is not paid, in parts of units
	// slack is what the fluid may be served while nothing is owed: calls leave late then, or a head
	// has gone that it had served.
	slack   int64
	waiting int // flows that have a head

	hold hold

	now   time.Duration
	units uint64 // that the rate allows in a period; 0: paid at once
	per   uint64 // the period, in ns
	rest  uint64 // of the time that has passed

	begun  *pq.Queue[Flow[O]] // heads that the fluid has begun with, by F
	later  *pq.Queue[Flow[O]] // heads that it will begin with, by S
	served *pq.Queue[Flow[O]] // flows that it serves, by when their weight in the sum is looked at
}

// A hold is what the latest one does, until a call leaves behind it.
type hold struct {
	lost  int64 // what it has kept from the fluid, and not from the line
	owed  int64 // when it ended
	since int64 // service since
}

// New returns a Sharing that knows no flow, of a limit that has a burst of so many units.
func New[O any](burst int64) *Sharing[O] {
	s := &Sharing[O]{burst: min(burst, most) * unit}
	s.tokens, s.slack = s.burst, s.burst
	queued := func(f *Flow[O]) *int32 { return &f.queued }
	s.begun, s.later = pq.New(cameBefore[O], queued), pq.New(cameBefore[O], queued)
	s.served = pq.New(func(_, _ *Flow[O]) bool { return false }, func(f *Flow[O]) *int32 { return &f.inSum })
	return s
}

// cameBefore is the order of heads of the same tags.
func cameBefore[O any](a, b *Flow[O]) bool {
	return a.finish < b.finish || a.finish == b.finish && a.order < b.order
}

// SetRate tells how fast the line lets units leave. The zero Rate, and an unlimited one, pay at
// once.
func (s *Sharing[O]) SetRate(r scheduler.Rate) {
	s.units, s.per, s.rest = 0, 0, 0
	if r.For(1) > 0 {
		s.units, s.per = uint64(r.Units()), uint64(r.Period())
	}
}

// Before reports whether V has run on until an instant before now.
func (s *Sharing[O]) Before(now time.Duration) bool { return s.now < now }

// Advance has V run on until now.
func (s *Sharing[O]) Advance(now time.Duration) {
	worth := s.worth(now)
	s.hold.since = min(s.hold.since+worth, far)
	s.pass(worth)
	s.run()
	s.settle()
}

// Stand has V stand still until now, as the line is held, while what has left is paid.
func (s *Sharing[O]) Stand(now time.Duration) {
	paid := min(s.worth(now), s.owed)
	s.owed -= paid
	s.hold = hold{lost: min(s.hold.lost+s.tokens+paid, far), owed: s.owed}
	s.tokens = 0
}

// worth returns the service that the time until now is worth.
func (s *Sharing[O]) worth(now time.Duration) int64 {
	if now <= s.now {
		return 0
	}
	passed := now - s.now
	s.now = now
	return s.service(passed)
}

// Worth returns the parts of units that come in the time, rounded up, and what comes in a
// nanosecond more.
func (s *Sharing[O]) Worth(d time.Duration) int64 {
	parts, _ := s.inTime(d+1, s.per-min(s.per, 1))
	return parts
}

// service returns the parts of units that the time is worth.
func (s *Sharing[O]) service(passed time.Duration) int64 {
	parts, rest := s.inTime(passed, s.rest)
	s.rest = rest
	return parts
}

// inTime returns the parts of units that come in the time, with a rest of the time before.
func (s *Sharing[O]) inTime(passed time.Duration, before uint64) (units int64, rest uint64) {
	hi, lo := bits.Mul64(s.units, unit)
	if s.units == 0 || hi > 0 {
		return far, before
	}
	hi, lo = bits.Mul64(lo, uint64(passed))
	lo, carry := bits.Add64(lo, before, 0)
	if hi += carry; hi >= s.per {
		return far, before
	}
	parts, rest := bits.Div64(hi, lo, s.per)
	return int64(min(parts, far)), rest
}

// pass is for time that was worth so much: it pays for what has left, and fills the bucket.
func (s *Sharing[O]) pass(parts int64) {
	paid := min(parts, s.owed)
	s.owed -= paid
	s.tokens += paid
	more := min(parts-paid, s.slack)
	s.tokens += more
	s.slack -= more
}

// run has the fluid serve what it can, by which V moves on.
func (s *Sharing[O]) run() {
	for s.tokens > 0 && s.sum > 0 {
		next := s.served.First().leaves
		if steps := (s.tokens + s.pending) / s.sum; steps < next-s.v {
			s.v += steps
			s.pending = (s.tokens + s.pending) % s.sum
			s.tokens = 0
			return
		}
		s.tokens -= (next-s.v)*s.sum - s.pending
		s.v, s.pending = next, 0
		s.retire()
	}
	if s.sum == 0 {
		s.tokens, s.pending, s.slack = min(s.tokens+s.pending, s.burst), 0, s.burst
	}
}

// Reopened is for the first call that leaves behind a hold, before [Sharing.Left]. When the line
// opened, the bucket held no more than that call needs, and the fluid gets what the line has gained
// by the hold but for that.
func (s *Sharing[O]) Reopened(cost int64) {
	bound := s.burst - min(parts(cost), s.burst)
	// It is below 0 if the fluid has served more than the line gets.
	s.tokens += s.hold.lost - max(bound-s.hold.owed, 0)
	s.owed = max(s.owed, bound-s.hold.since)
	s.tokens = min(s.tokens, s.burst-s.owed-s.ahead()) // it is never ahead of the line
	s.hold = hold{}
	s.run()
}

// owe is for parts of units that have left.
func (s *Sharing[O]) owe(units int64) {
	s.owed = min(s.owed, far) + units
	if s.units == 0 {
		s.pass(s.owed)
	}
}

// waste is for what the fluid was served in vain: as much may still leave.
func (s *Sharing[O]) waste(parts int64) { s.slack = min(s.slack+max(parts, 0), far) }

// settle has V pass all tags when nothing waits and all is paid, but for what the fluid has
// still to serve as it was served in vain before.
func (s *Sharing[O]) settle() {
	if s.v >= far {
		s.rebase()
	}
	if s.waiting > 0 || s.owed > 0 {
		return
	}
	for f := s.served.First(); f != nil && f.leaves <= s.v+2; f = s.served.First() {
		s.v = max(s.v, f.leaves)
		s.retire()
	}
	s.slack = max(s.slack, s.burst)
}
