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

// A Flow is the calls of one owner. The zero Flow but for its Owner has none.
//
// Its head sits on a seat: S, a weight, and an F that no call on the seat goes below. A call
// that takes the place of a head that went without leaving takes its seat.
type Flow[O any] struct {
	Owner *O

	start  int64 // S of the head
	end    int64 // where the next call begins at the earliest
	finish int64 // F of the head
	last   int64 // where the fluid ends with all its calls, whether they have left or not
	leaves int64 // when its weight in the sum is looked at: no later than it changes

	weight int64  // in the sum
	seat   int64  // of the head, or of the call before it
	behind int64  // of the calls behind the head
	before []span // of the calls before the head, if they weighed otherwise and V is there
	order  uint64 // of the head, among equals
	queued int32  // where it is in begun or later
	inSum  int32  // where it is in served, 0 if it is not in the sum
	waits  bool   // it has a head
	begun  bool   // V has reached S of the head
}

// A span is a part of V, up to until, in which a flow counts with a weight.
type span struct{ until, weight int64 }

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
		passed := now - s.now
		s.now = now
		if running {
			s.pass(s.service(passed))
		} else {
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
}

// ahead returns how much the fluid has served that has not left, less what has left that it
// has not served.
func (s *Sharing[O]) ahead() (parts int64) {
	for _, h := range []*pq.Queue[Flow[O]]{s.begun, s.later} {
		for f := range h.Each {
			parts += s.servedOf(f) - s.owedOf(f, f.start)
		}
	}
	for f := range s.served.Each {
		if !f.waits {
			parts -= s.owedOf(f, f.last)
		}
	}
	return parts
}

// stretch returns the weight with which the fluid serves a flow at V, and until when.
func (s *Sharing[O]) stretch(f *Flow[O]) (weight, until int64) {
	for len(f.before) > 0 && f.before[0].until <= s.v {
		f.before = f.before[1:]
	}
	switch {
	case len(f.before) > 0:
		return f.before[0].weight, f.before[0].until
	case s.v < f.end && f.seat != f.behind:
		return f.seat, f.end
	}
	return f.behind, f.last
}

// weigh has a flow be in the sum with the weight that it has at V, or not at all.
func (s *Sharing[O]) weigh(f *Flow[O]) {
	weight, until := s.stretch(f)
	in := f.inSum > 0
	switch {
	case until > s.v && in:
		s.sum += weight - f.weight
		f.weight, f.leaves = weight, until
		s.served.Put(f, until)
	case until > s.v:
		s.sum += weight
		f.weight, f.leaves = weight, until
		s.served.Put(f, until)
	case in:
		s.leaveSum(f)
	}
}

// retire looks at the flows of which V has reached the end of a stretch.
func (s *Sharing[O]) retire() {
	for f := s.served.First(); f != nil && f.leaves <= s.v; f = s.served.First() {
		s.weigh(f)
	}
}

func (s *Sharing[O]) leaveSum(f *Flow[O]) {
	s.sum -= f.weight
	s.served.Remove(f)
	if s.sum == 0 {
		s.pending = 0
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
		f := s.served.First()
		s.v = max(s.v, f.last)
		s.leaveSum(f)
	}
}

// rebase has V be 0, and all tags less by as much.
func (s *Sharing[O]) rebase() {
	by := s.v
	s.v = 0
	s.served.Shift(-by)
	for _, h := range []*pq.Queue[Flow[O]]{s.begun, s.later} {
		h.Shift(-by)
		for f := range h.Each {
			f.start, f.end, f.finish, f.last, f.leaves = f.start-by, f.end-by, f.finish-by, f.last-by, f.leaves-by
			f.rebaseSpans(by)
		}
	}
	for f := range s.served.Each {
		if !f.waits {
			f.end, f.last, f.leaves = f.end-by, f.last-by, f.leaves-by
			f.rebaseSpans(by)
		}
	}
}

func (f *Flow[O]) rebaseSpans(by int64) {
	for i := range f.before {
		f.before[i].until -= by
	}
}
