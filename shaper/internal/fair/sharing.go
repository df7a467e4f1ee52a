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
	unit = 1 << 20
	// most bounds costs, so that no tag overflows; one that is larger counts as so many units.
	most = 1 << 40
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
	slack   int64 // what the fluid may be served while nothing is owed: calls are late then, or a head has gone that it had served
	waiting int   // flows that have a head

	now   time.Duration
	units uint64 // that the rate allows in a period; 0: paid at once
	per   uint64 // the period, in ns
	rest  uint64 // of the time that has passed

	begun  *pq.Queue[Flow[O]] // heads that the fluid has begun with, by F
	later  *pq.Queue[Flow[O]] // heads that it will begin with, by S
	served *pq.Queue[Flow[O]] // flows that it serves, by when their weight in the sum is looked at
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

// Advance has V run on until now, or stand still, as the line is held: what stands unused is
// lost then.
func (s *Sharing[O]) Advance(now time.Duration, running bool) {
	if now > s.now {
		worth := s.service(now - s.now)
		s.now = now
		if running {
			s.pass(worth)
		} else {
			s.owed -= min(worth, s.owed)
			s.tokens = 0
		}
	}
	s.run()
	s.settle()
}

// service returns the parts of units that the time is worth.
func (s *Sharing[O]) service(passed time.Duration) int64 {
	hi, lo := bits.Mul64(s.units, unit)
	if s.units == 0 || hi > 0 {
		return far
	}
	hi, lo = bits.Mul64(lo, uint64(passed))
	lo, carry := bits.Add64(lo, s.rest, 0)
	if hi += carry; hi >= s.per {
		return far
	}
	parts, rest := bits.Div64(hi, lo, s.per)
	s.rest = rest
	return int64(min(parts, far))
}

// pass is for time that was worth so much: it pays for what has left, and fills the bucket.
func (s *Sharing[O]) pass(parts int64) {
	paid := min(parts, s.owed)
	s.owed -= paid
	s.tokens += paid
	more := min(parts-paid, s.slack, max(s.burst-s.tokens, 0))
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
	s.tokens = min(s.tokens, s.burst)
	if s.sum == 0 {
		s.slack = s.burst
	}
}

// Reopened is for the first call that leaves behind a hold, before [Sharing.Left]. The bucket
// holds as much as it costs then, so the fluid may catch up with it.
func (s *Sharing[O]) Reopened(cost int64) {
	offered := min(min(cost, most)*unit, s.burst)
	if behind := offered - s.ahead(); behind > 0 {
		s.tokens = min(s.tokens+behind, s.burst)
	}
	s.owed = max(s.owed, s.burst-offered)
	s.run()
}

// owe is for units that have left.
func (s *Sharing[O]) owe(cost int64) {
	s.owed = min(s.owed, far) + parts(cost)
	if s.units == 0 {
		s.pass(s.owed)
	}
}

// waste is for what the fluid was served in vain: as much may still leave.
func (s *Sharing[O]) waste(parts int64) { s.slack = min(s.slack+max(parts, 0), far) }

// settle counts from the beginning when nothing waits and all is paid: what V has not reached
// yet are but fractions.
func (s *Sharing[O]) settle() {
	if s.waiting > 0 || s.owed > 0 {
		if s.v >= far {
			s.rebase()
		}
		return
	}
	for s.sum > 0 {
		f := s.served.First()
		s.v = max(s.v, f.last)
		s.leaveSum(f)
	}
}
