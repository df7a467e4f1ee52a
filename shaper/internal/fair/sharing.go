// Package fair shares one limit among flows of calls, in proportion to their weights: earliest
// eligible virtual deadline first (Stoica and Abdel-Wahab, TR-95-22), which is WF2Q+ with the
// virtual time of the fluid system. It is pure: instants are arguments.
//
// Beside the line runs an ideal fluid system that serves all flows with a backlog at once. V,
// its virtual time, is what a flow of weight 1 has been served that always had one. Each call
// that is at the head of its flow has two tags: the S and F at which the fluid begins and ends
// to serve it. Of the heads that the fluid has begun with, the one goes next that it ends first.
//
// V moves on as time passes, for as long as there are departures that it has not paid for. If
// no head has been begun with, as calls left in a burst, it pays at once.
package fair

import (
	"math/bits"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// Tags are counted in parts of a unit per weight of 1. S and F are rounded up, V down.
const (
	unit = 1 << 20
	// most bounds costs, so that no tag overflows; one that is larger counts as so many units.
	most = 1 << 40
	// far is when all tags are counted anew.
	far = 1 << 60
)

// A Flow is the calls of one owner. The zero Flow but for its Owner has none.
type Flow[O any] struct {
	Owner *O

	start, finish int64  // S and F of the head, or of the call before it
	last          int64  // F of the last of all its calls, whether they have left or not
	weight        int64  // of the head
	order         uint64 // of the head, among equals
	leaves        int64  // when it may leave the sum: last, or less
	at            [2]int32
	waits         bool // it has a head
	begun         bool // V has reached S of the head
}

// A Sharing is the virtual time and the flows that it knows. It pays for departures at once,
// until SetRate tells how long that takes.
type Sharing[O any] struct {
	v       int64
	pending int64 // service that is not in v yet, as it is less than one part for each in the sum
	sum     int64 // of the weights of the flows that the fluid serves
	owed    int64 // units that have left and are not served yet, in parts
	waiting int   // flows that have a head

	now   time.Duration
	units uint64 // that the rate allows in a period; 0: paid at once
	per   uint64 // the period, in ns
	rest  uint64 // of the time that has passed

	begun, later, served heap[O]
}

// New returns a Sharing that knows no flow.
func New[O any]() *Sharing[O] {
	s := new(Sharing[O])
	s.begun.by, s.later.by, s.served.by = byFinish, byStart, byLast
	s.served.which = inServed
	return s
}

// SetRate tells how fast the line lets units leave. The zero Rate, and an unlimited one, pay at
// once.
func (s *Sharing[O]) SetRate(r scheduler.Rate) {
	s.units, s.per, s.rest = 0, 0, 0
	if r.For(1) > 0 {
		s.units, s.per = uint64(r.Units()), uint64(r.Period())
	}
}

// V returns the virtual time. A call that is not the head of its flow keeps that of when it
// entered.
func (s *Sharing[O]) V() int64 { return s.v }

// Advance has V run on until now, or stand still, as the line is held.
func (s *Sharing[O]) Advance(now time.Duration, running bool) {
	passed := now - s.now
	if passed <= 0 {
		return
	}
	s.now = now
	switch {
	case !running:
	case s.owed == 0:
		s.rest = 0
	default:
		s.serve(s.service(passed))
	}
	s.settle()
}

// service returns the parts of units that the time is worth.
func (s *Sharing[O]) service(passed time.Duration) int64 {
	if s.units == 0 {
		return s.owed
	}
	hi, lo := bits.Mul64(s.units, unit)
	if hi > 0 {
		return s.owed
	}
	hi, lo = bits.Mul64(lo, uint64(passed))
	lo, carry := bits.Add64(lo, s.rest, 0)
	if hi += carry; hi >= s.per {
		s.rest = 0
		return s.owed
	}
	parts, rest := bits.Div64(hi, lo, s.per)
	s.rest = rest
	if parts >= uint64(s.owed) {
		return s.owed
	}
	return int64(parts)
}

// serve pays for so many parts, by which V moves on.
func (s *Sharing[O]) serve(parts int64) {
	s.owed -= parts
	if s.owed == 0 {
		s.rest = 0
	}
	for parts > 0 && s.sum > 0 {
		next := s.nextServed()
		if steps := (parts + s.pending) / s.sum; steps < next-s.v {
			s.v += steps
			s.pending = (parts + s.pending) % s.sum
			return
		}
		parts -= (next-s.v)*s.sum - s.pending
		s.v, s.pending = next, 0
		s.retire()
	}
}

// jump has V move on to v, which is paid as far as it is owed.
func (s *Sharing[O]) jump(v int64) {
	for s.v < v && s.sum > 0 {
		to := min(v, s.nextServed())
		hi, parts := bits.Mul64(uint64(to-s.v), uint64(s.sum))
		if hi > 0 || parts > uint64(s.owed) {
			s.owed = 0
		} else {
			s.owed = max(0, s.owed+s.pending-int64(parts))
		}
		s.v, s.pending = to, 0
		s.retire()
	}
	s.v = max(s.v, v)
}

// nextServed returns the V at which the next flow leaves the sum. There is one in it.
func (s *Sharing[O]) nextServed() int64 {
	for {
		f := s.served.first()
		if f.leaves >= f.last {
			return f.leaves
		}
		f.leaves = f.last
		s.served.fix(f)
	}
}

// retire takes those flows out of the sum whose calls the fluid has all served.
func (s *Sharing[O]) retire() {
	for s.sum > 0 && s.nextServed() <= s.v {
		s.leaveSum(s.served.first())
	}
}

func (s *Sharing[O]) leaveSum(f *Flow[O]) {
	s.sum -= f.weight
	s.served.remove(f)
	if s.sum == 0 {
		s.pending = 0
	}
}

// enterSum has the fluid serve a flow until V is its last tag.
func (s *Sharing[O]) enterSum(f *Flow[O], weight int64) {
	if f.at[inServed] > 0 {
		s.sum += weight - f.weight
		f.weight = weight
		return
	}
	f.weight = weight
	if f.last > s.v {
		s.sum += weight
		f.leaves = f.last
		s.served.add(f)
	}
}

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
		f := s.served.first()
		s.v = max(s.v, f.last)
		s.leaveSum(f)
	}
}

// rebase has V be 0, and all tags less by as much.
func (s *Sharing[O]) rebase() {
	by := s.v
	s.v = 0
	for _, h := range []*heap[O]{&s.begun, &s.later} {
		for _, f := range h.flows {
			f.start, f.finish = f.start-by, f.finish-by
			if f.at[inServed] == 0 {
				f.last -= by
			}
		}
	}
	for _, f := range s.served.flows {
		f.last, f.leaves = f.last-by, f.leaves-by
		if !f.waits {
			f.start, f.finish = f.start-by, f.finish-by
		}
	}
}
