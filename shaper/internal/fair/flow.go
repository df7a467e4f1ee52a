package fair

// A Flow is the calls of one owner. The zero Flow but for its Owner has none.
//
// Its head sits on a seat: S, a weight, and an F that no call on the seat goes below. A call
// that takes the place of a head that went without leaving takes its seat.
type Flow[O any] struct {
	Owner *O

	start  tag    // S of the head, or where the next call begins at the earliest
	end    tag    // where the call behind the head begins
	last   tag    // where the fluid ends with all its calls, whether they have left or not
	finish int64  // F of the head
	floor  int64  // no F is less until the flow has no head
	anchor anchor // where the fluid took up the calls
	leaves int64  // when its weight in the sum is looked at: no later than it changes

	cost   int64  // of the head
	units  int64  // of all calls that wait
	before *spans // of V until start, if not all of it has the seat's weight
	order  uint64 // of the head, among equals

	weight int32 // in the sum
	seat   int32 // of the head, or of the call before it
	named  int32 // of the calls behind the head
	queued int32 // where it is in begun or later
	inSum  int32 // where it is in served, 0 if it is not in the sum
	waits  bool  // it has a head
	begun  bool  // V has reached S of the head
	moved  bool  // end is not where the head's cost ends: the fluid was beyond it when a weight changed
}

// Join is for a flow without a head: a call has come, or its owner allows calls again. The head
// costs so much, and all calls that wait cost units together.
func (s *Sharing[O]) Join(f *Flow[O], cost, units, weight int64, order uint64) {
	f.cost, f.units, f.order = cost, units, order
	f.anchor, f.floor, f.named = noAnchor, noFloor, int32(weight)
	s.sit(f, s.entry(f))
	f.waits = true
	s.waiting++
	s.place(f, f.reached(parts(cost)))
}

// sit gives a head, or a charge, the seat that begins at start.
func (s *Sharing[O]) sit(f *Flow[O], start tag) {
	switch {
	case start.v <= s.v:
		f.before = nil
	case f.before != nil || f.seat != f.named:
		f.before = f.before.add(span{start.v, int64(f.seat)})
	}
	if f.seat != f.named {
		start.over = int32(int64(start.over) * int64(f.named) / int64(max(f.seat, 1)))
	}
	f.start, f.seat, f.moved = start, f.named, false
}

// entry returns where a call begins that comes now and is the only one of its flow. One that the
// fluid still serves goes on from its end, and others begin at V.
func (s *Sharing[O]) entry(f *Flow[O]) tag {
	if f.inSum > 0 && f.start.v > s.v {
		return f.start
	}
	return tag{v: s.v}
}

// Left is for a flow whose head has left. Succeed, or Dry, comes next.
func (s *Sharing[O]) Left(f *Flow[O]) {
	s.owe(parts(f.cost))
	if f.anchor.at -= parts(f.cost); f.anchor.at < 0 {
		f.anchor = noAnchor // end knows it
	}
	f.units -= f.cost
	f.start, f.cost = f.end, 0
}

// Succeed is for a flow whose head has left, and the next call is head.
func (s *Sharing[O]) Succeed(f *Flow[O], cost int64, order uint64) {
	s.unqueue(f)
	f.cost, f.order = cost, order
	start := f.start
	if f.anchor.at == 0 && f.anchor.v > start.v {
		start = tag{v: f.anchor.v}
	}
	s.sit(f, start)
	s.place(f, f.reached(parts(cost)))
}

// Replace is for a flow that has another head, as the one before was cancelled or a more urgent
// call of the flow has come. It takes the seat: S stays, and F is not less, as otherwise many
// flows might be overdue at once. What the fluid has served on the seat goes on to the calls
// that wait now. With the same head, by order, it does nothing.
func (s *Sharing[O]) Replace(f *Flow[O], cost, units int64, order uint64) {
	if order == f.order {
		return
	}
	if units > f.units {
		s.takeUp(f)
	}
	served, done := s.servedOf(f), f.reached(parts(cost))
	s.unqueue(f)
	s.waste(min(served, parts(f.units)) - min(served, parts(units)))
	f.cost, f.units, f.order = cost, units, order
	f.floor, f.moved = f.finish, false
	s.goOn(f, served)
	if served < parts(cost) {
		done = f.reached(parts(cost))
	}
	s.place(f, done)
}

// Reweigh is for a flow whose calls behind the head weigh otherwise from now on. What the fluid
// has served of them stays.
func (s *Sharing[O]) Reweigh(f *Flow[O], weight int64) {
	if !f.waits {
		return
	}
	served := s.servedOf(f)
	f.named = int32(weight)
	s.goOn(f, served)
	f.ends()
	s.weigh(f)
}

// Grow is for a call that has joined behind the head.
func (s *Sharing[O]) Grow(f *Flow[O], cost int64) {
	s.takeUp(f)
	f.units += cost
	f.ends()
	if f.inSum == 0 {
		s.weigh(f)
	}
}

// Shrink is for a call that has gone from behind the head.
func (s *Sharing[O]) Shrink(f *Flow[O], cost int64) {
	served := s.servedOf(f)
	s.waste(min(served, parts(f.units)) - min(served, parts(f.units-cost)))
	f.units -= cost
	f.ends()
	s.weigh(f)
}

// Dry is for a flow that has no head any more. If its head has left, that is served in the
// fluid till the end; if not, the fluid stops where the head began.
func (s *Sharing[O]) Dry(f *Flow[O], left bool) {
	s.unqueue(f)
	if !left {
		s.waste(min(s.servedOf(f), parts(f.units)))
	}
	f.waits, f.moved = false, false
	s.waiting--
	f.end, f.last, f.named = f.start, f.start, f.seat
	s.weigh(f)
	s.settle()
}

// Charge is for units of a flow that have left without asking. They are served to it before its
// head, and to no other.
func (s *Sharing[O]) Charge(f *Flow[O], cost, weight int64) { s.Debit(f, parts(cost), weight) }

// Debit is Charge for so many parts of units.
func (s *Sharing[O]) Debit(f *Flow[O], units, weight int64) {
	s.owe(units)
	if !f.waits {
		f.named = int32(weight)
		s.sit(f, s.entry(f))
		f.start = f.start.rise(units, f.seat)
		f.end, f.last = f.start, f.start
		s.weigh(f)
		return
	}
	ahead := min(s.servedOf(f), parts(f.units)) - units // of the head, after the charge
	s.unqueue(f)
	if f.floor > s.v {
		f.floor = tag{v: f.floor}.rise(units, f.seat).v
	}
	if f.start.v > s.v {
		f.start = f.start.rise(units, f.seat)
	} else {
		f.start = tag{v: s.v - max(ahead, 0)/int64(f.seat)}.rise(max(-ahead, 0), f.seat)
	}
	f.anchor, f.moved = noAnchor, false
	s.goOn(f, ahead)
	s.place(f, f.reached(parts(f.cost)))
}

// Refund is for parts of units that had left, and turn out not to. Those that the fluid has not
// served yet it never will, so what comes after them comes sooner. What the line gets back beyond
// that goes to the calls of the flow that wait, but for a flow that is not ahead any more: its head
// may be half served, and many such would be overdue at once. That, and what is more, the fluid
// serves to all, once V is brought up to now. What the line cannot catch up the fluid must not be
// ahead by.
func (s *Sharing[O]) Refund(f *Flow[O], units int64) {
	back := min(units, s.owed)
	s.owed -= back
	s.hold.owed = max(s.hold.owed-units, 0) // as it would have been when a hold ended
	undone := min(units, s.owedOf(f))
	s.tokens += back - undone
	if undone > 0 {
		s.undo(f, undone)
		if more := min(back-undone, undone); more > 0 && f.waits {
			s.tokens -= s.credit(f, more)
		}
	}
}

// credit has the fluid, which is about to begin with a head, have served so many parts of the
// calls of its flow, or all of them. It returns how many.
func (s *Sharing[O]) credit(f *Flow[O], units int64) int64 {
	units = min(units, parts(f.units))
	s.unqueue(f)
	f.start = tag{v: s.v - units/int64(f.seat)}
	f.before = nil
	s.goOn(f, units)
	s.place(f, f.reached(parts(f.cost)))
	return units
}

// undo takes back the latest so many parts of what has left of a flow. The fluid has not served
// them, so V has not reached S of its head, nor any anchor.
func (s *Sharing[O]) undo(f *Flow[O], units int64) {
	if f.waits {
		s.unqueue(f)
	}
	before := f.start.v
	s.fall(f, units)
	if f.floor > s.v {
		f.floor -= before - f.start.v
	}
	f.anchor, f.moved = noAnchor, false
	if f.waits {
		s.place(f, f.reached(parts(f.cost)))
		return
	}
	f.end, f.last = f.start, f.start
	s.weigh(f)
}

// First returns the flow whose head is next, or nil. If the fluid has begun with none, it is the
// one that it will begin with first.
func (s *Sharing[O]) First() *Flow[O] {
	for f := s.later.First(); f != nil && f.start.v <= s.v; f = s.later.First() {
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

// place gives a head its F, which is no less than its floor, and the flow its weight in the sum.
func (s *Sharing[O]) place(f *Flow[O], finish tag) {
	f.finish = max(finish.v, f.floor)
	f.ends()
	s.weigh(f)
	s.queue(f)
}

// queue puts a head among those that the fluid has begun with, or will.
func (s *Sharing[O]) queue(f *Flow[O]) {
	if f.begun = f.start.v <= s.v; f.begun {
		s.begun.Put(f, f.finish)
	} else {
		s.later.Put(f, f.start.v)
	}
}

func (s *Sharing[O]) unqueue(f *Flow[O]) {
	if f.begun {
		s.begun.Remove(f)
	} else {
		s.later.Remove(f)
	}
}
