package fair

import "math/bits"

// Join is for a flow without a head: a call has come, or its owner allows calls again. The head
// costs so much, and all calls that wait cost units together.
func (s *Sharing[O]) Join(f *Flow[O], cost, units, weight int64, order uint64) {
	s.sit(f, s.entry(f), cost, weight)
	f.finish, f.order = f.end, order
	f.waits = true
	s.waiting++
	f.last = f.end + parts(units-cost, weight)
	s.weigh(f)
	s.queue(f)
}

// sit gives a head, or a charge, the seat that begins at start.
func (s *Sharing[O]) sit(f *Flow[O], start, cost, weight int64) {
	if start <= s.v {
		f.before = nil
	} else if n := len(f.before); (n > 0 || f.seat != weight) && f.end > s.v && (n == 0 || f.before[n-1].until < f.end) {
		f.before = append(f.before, span{f.end, f.seat})
	}
	f.start, f.end = start, start+parts(cost, weight)
	f.seat, f.behind = weight, weight
}

// entry returns where a call begins that comes now and is the only one of its flow. One that the
// fluid still serves goes on from its end, and others begin at V.
func (s *Sharing[O]) entry(f *Flow[O]) int64 {
	if f.inSum > 0 {
		return max(s.v, f.last)
	}
	return s.v
}

// Left is for a flow whose head has left. Succeed, or Dry, comes next.
func (s *Sharing[O]) Left(f *Flow[O], cost int64) { s.owe(cost) }

// Succeed is for a flow whose head has left, and the next call is head. It was told by Mark where
// that begins at the earliest, and behind it wait calls of so many units.
func (s *Sharing[O]) Succeed(f *Flow[O], cost, behind, weight, mark int64, order uint64) {
	s.unqueue(f)
	same := f.behind == weight
	s.sit(f, max(min(mark, s.v), f.end), cost, weight) // V may have been counted anew since Mark
	f.finish, f.order = f.end, order
	if !same {
		f.last = f.end + parts(behind, weight)
	}
	f.last = max(f.last, f.end)
	s.weigh(f)
	s.queue(f)
}

// Replace is for a flow that has another head, as the one before was cancelled or a more urgent
// call of the flow has come. It takes the seat: S stays, and F is not less, as otherwise many
// flows might be overdue at once. What the fluid has served on the seat beyond its cost goes on
// to the calls behind it, at the weight that is theirs.
func (s *Sharing[O]) Replace(f *Flow[O], cost, behind, weight int64, order uint64) {
	s.unqueue(f)
	served := s.servedOf(f)
	f.end = f.start + parts(cost, f.seat)
	f.finish = max(f.finish, f.end)
	if beyond := served - min(cost, most)*unit; beyond > 0 {
		f.end = s.v - beyond/weight
	}
	f.last = f.end + parts(behind, weight)
	f.order = order
	s.waste(scale(max(s.v-f.last, 0), weight, 1))
	s.weigh(f)
	s.queue(f)
}

// Reweigh is for a flow of which the calls behind the head weigh otherwise from now on. What the
// fluid has served of them stays.
func (s *Sharing[O]) Reweigh(f *Flow[O], before, weight, behind int64) {
	if !f.waits {
		return
	}
	if s.v > f.end {
		f.end = s.v - scale(s.v-f.end, before, weight)
	}
	f.behind = weight
	f.last = f.end + parts(behind, weight)
	s.weigh(f)
}

// Mark returns where a call begins at the earliest that joins behind the head: nowhere, if the
// fluid still serves its flow, and otherwise at V.
func (s *Sharing[O]) Mark(f *Flow[O]) int64 {
	if f.inSum > 0 && f.last > s.v {
		return 0
	}
	return s.v
}

// Grow is for a call that has joined behind the head.
func (s *Sharing[O]) Grow(f *Flow[O], cost, weight int64) {
	f.last = max(f.last, s.v) + parts(cost, weight)
	if f.inSum == 0 {
		s.weigh(f)
	}
}

// Shrink is for a call that has gone from behind the head.
func (s *Sharing[O]) Shrink(f *Flow[O], cost, weight int64) {
	f.last = max(f.last-parts(cost, weight), f.end)
	s.waste(scale(max(s.v-f.last, 0), weight, 1))
	s.weigh(f)
}

// Dry is for a flow that has no head any more. If its head has left, that is served in the
// fluid till the end; if not, the fluid stops where the head began.
func (s *Sharing[O]) Dry(f *Flow[O], left bool) {
	s.unqueue(f)
	f.waits = false
	s.waiting--
	if !left {
		s.waste(s.servedOf(f))
		f.end = f.start
	}
	f.last, f.behind = f.end, f.seat
	s.weigh(f)
	s.settle()
}

// Charge is for units of a flow that have left without asking. They are served to it, and to
// no other.
func (s *Sharing[O]) Charge(f *Flow[O], cost, weight int64) {
	s.owe(cost)
	if !f.waits {
		s.sit(f, s.entry(f), cost, weight)
		f.last = f.end
		s.weigh(f)
		return
	}
	more := parts(cost, f.seat)
	s.unqueue(f)
	f.start, f.end, f.finish, f.last = f.start+more, f.end+more, f.finish+more, f.last+more
	s.weigh(f)
	s.queue(f)
}

// First returns the flow whose head is next, or nil. If the fluid has begun with none, it is the
// one that it will begin with first.
func (s *Sharing[O]) First() *Flow[O] {
	for f := s.later.First(); f != nil && f.start <= s.v; f = s.later.First() {
		s.unqueue(f)
		s.queue(f)
	}
	if f := s.begun.First(); f != nil {
		return f
	}
	return s.later.First()
}

// Passed reports whether the flow makes no difference any more: it has no head, and V has
// reached its end.
func (s *Sharing[O]) Passed(f *Flow[O]) bool { return !f.waits && f.inSum == 0 }

func (s *Sharing[O]) owe(cost int64) {
	s.owed = min(s.owed, far) + min(cost, most)*unit
	if s.units == 0 {
		s.pass(s.owed)
	}
}

// waste is for what the fluid was served in vain: as much may still leave.
func (s *Sharing[O]) waste(parts int64) { s.slack = min(s.slack+parts, far) }

// servedOf returns what the fluid has served of the calls of a flow that wait.
func (s *Sharing[O]) servedOf(f *Flow[O]) int64 {
	if s.v <= f.start {
		return 0
	}
	ofHead := scale(min(s.v, f.end, f.last)-f.start, f.seat, 1)
	return min(ofHead+scale(max(min(s.v, f.last)-f.end, 0), f.behind, 1), far)
}

// owedOf returns what the fluid has not served yet of the calls of a flow that have left, which
// end at the given tag.
func (s *Sharing[O]) owedOf(f *Flow[O], end int64) (owed int64) {
	at := s.v
	for _, b := range f.before {
		owed += scale(max(b.until-at, 0), b.weight, 1)
		at = max(at, b.until)
	}
	return min(owed+scale(max(end-at, 0), f.seat, 1), far)
}

// parts returns what V moves on by while a flow of the weight is served a cost, rounded up.
func parts(cost, weight int64) int64 {
	return (min(cost, most)*unit + weight - 1) / weight
}

// scale returns d·num/den, of which den is above 0, or the most that is told.
func scale(d, num, den int64) int64 {
	hi, lo := bits.Mul64(uint64(d), uint64(num))
	if hi >= uint64(den) {
		return far
	}
	q, _ := bits.Div64(hi, lo, uint64(den))
	return int64(min(q, far))
}

// queue puts a head among those that the fluid has begun with, or will.
func (s *Sharing[O]) queue(f *Flow[O]) {
	if f.begun = f.start <= s.v; f.begun {
		s.begun.Put(f, f.finish)
	} else {
		s.later.Put(f, f.start)
	}
}

func (s *Sharing[O]) unqueue(f *Flow[O]) {
	if f.begun {
		s.begun.Remove(f)
	} else {
		s.later.Remove(f)
	}
}
