package fair

import "math/bits"

// Join is for a flow without a head: a call has come, or its owner allows calls again. The head
// costs so much, and all calls that wait cost units together.
func (s *Sharing[O]) Join(f *Flow[O], cost, units, weight int64, order uint64) {
	f.start = s.entry(f)
	f.end = f.start + parts(cost, weight)
	f.finish, f.order = f.end, order
	f.last = f.end + parts(units-cost, weight)
	f.waits = true
	s.waiting++
	s.enterSum(f, weight)
	s.queue(f)
}

// entry returns where a call begins that comes now and is the only one of its flow. One that the
// fluid still serves goes on from its end, and others begin at V.
func (s *Sharing[O]) entry(f *Flow[O]) int64 {
	if f.at[inServed] > 0 {
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
	f.start = max(mark, f.end)
	f.end = f.start + parts(cost, weight)
	f.finish, f.order = f.end, order
	if weight != f.weight {
		f.last = f.end + parts(behind, weight)
	}
	f.last = max(f.last, f.end)
	s.enterSum(f, weight)
	s.queue(f)
}

// Replace is for a flow that has another head, as the one before was cancelled or a more urgent
// call of the flow has come. It takes the seat: S stays, and F is not less, as otherwise many
// flows might be overdue at once. What the fluid has served on the seat beyond its cost goes on
// to the calls behind it, at the weight that is theirs.
func (s *Sharing[O]) Replace(f *Flow[O], cost, weight int64, order uint64) {
	s.unqueue(f)
	served := int64(0)
	if s.v > f.start {
		served = scale(min(s.v, f.end)-f.start, f.weight, 1) + scale(max(s.v-f.end, 0), weight, 1)
	}
	f.end = f.start + parts(cost, f.weight)
	f.finish = max(f.finish, f.end)
	if beyond := served - min(cost, most)*unit; beyond > 0 {
		f.end = s.v - beyond/weight
	}
	f.last = max(f.last, f.end)
	f.order = order
	s.enterSum(f, f.weight)
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
	f.last = max(f.end+parts(behind, weight), f.end)
	s.enterSum(f, f.weight)
	s.shorten(f)
}

// Mark returns where a call begins at the earliest that joins behind the head: nowhere, if the
// fluid still serves its flow, and otherwise at V.
func (s *Sharing[O]) Mark(f *Flow[O]) int64 {
	if f.at[inServed] > 0 && f.last > s.v {
		return 0
	}
	return s.v
}

// Grow is for a call that has joined behind the head.
func (s *Sharing[O]) Grow(f *Flow[O], cost, weight int64) {
	f.last = max(f.last, s.v) + parts(cost, weight)
	s.enterSum(f, f.weight)
}

// Shrink is for a call that has gone from behind the head.
func (s *Sharing[O]) Shrink(f *Flow[O], cost, weight int64) {
	f.last = max(f.last-parts(cost, weight), f.end)
	s.shorten(f)
}

// Dry is for a flow that has no head any more. If its head has left, that is served in the
// fluid till the end; if not, the fluid stops where the head began.
func (s *Sharing[O]) Dry(f *Flow[O], left bool) {
	s.unqueue(f)
	f.waits = false
	s.waiting--
	if !left {
		f.end = f.start
	}
	f.last = f.end
	s.shorten(f)
	s.settle()
}

// Charge is for units of a flow that have left without asking. They are served to it, and to
// no other.
func (s *Sharing[O]) Charge(f *Flow[O], cost, weight int64) {
	s.owe(cost)
	if !f.waits {
		f.end = s.entry(f) + parts(cost, weight)
		f.last = f.end
		s.enterSum(f, weight)
		return
	}
	more := parts(cost, f.weight)
	s.unqueue(f)
	f.start, f.end, f.finish, f.last = f.start+more, f.end+more, f.finish+more, f.last+more
	s.enterSum(f, f.weight)
	s.queue(f)
}

// First returns the flow whose head is next, or nil. If the fluid has begun with none, it is the
// one that it will begin with first.
func (s *Sharing[O]) First() *Flow[O] {
	for f := s.later.first(); f != nil && f.start <= s.v; f = s.later.first() {
		s.unqueue(f)
		s.queue(f)
	}
	if f := s.begun.first(); f != nil {
		return f
	}
	return s.later.first()
}

// Passed reports whether the flow makes no difference any more: it has no head, and V has
// reached its end.
func (s *Sharing[O]) Passed(f *Flow[O]) bool { return !f.waits && f.at[inServed] == 0 }

func (s *Sharing[O]) owe(cost int64) {
	s.owed = min(s.owed, far) + min(cost, most)*unit
	if s.units == 0 {
		s.pay(s.owed)
	}
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

// shorten has the flow leave the sum no later than at its end.
func (s *Sharing[O]) shorten(f *Flow[O]) {
	if f.at[inServed] > 0 && f.leaves > f.last {
		f.leaves = f.last
		s.served.fix(f)
	}
	s.retire()
}

// queue puts a head among those that the fluid has begun with, or will.
func (s *Sharing[O]) queue(f *Flow[O]) {
	if f.begun = f.start <= s.v; f.begun {
		s.begun.add(f)
	} else {
		s.later.add(f)
	}
}

func (s *Sharing[O]) unqueue(f *Flow[O]) {
	if f.begun {
		s.begun.remove(f)
	} else {
		s.later.remove(f)
	}
}
