package fair

// Join is for a flow without a head: a call has come, or its owner allows calls again. The head
// costs so much, and all calls that wait cost units together.
func (s *Sharing[O]) Join(f *Flow[O], cost, units, weight int64, order uint64) {
	before := s.v
	if f.at[inServed] > 0 {
		before = max(before, f.last)
	}
	f.waits = true
	s.waiting++
	s.tag(f, before, cost, weight, order)
	f.last = f.finish + parts(units-cost, weight)
	s.enterSum(f, weight)
	s.queue(f)
}

// Left is for a flow whose head has left. Succeed, or Dry, comes next.
func (s *Sharing[O]) Left(f *Flow[O], cost int64) { s.owe(cost) }

// Succeed is for a flow whose head has left, and the next call is head. It entered at that V,
// and behind it wait calls of so many units.
func (s *Sharing[O]) Succeed(f *Flow[O], cost, behind, weight int64, entered int64, order uint64) {
	s.unqueue(f)
	s.tag(f, max(entered, f.finish), cost, weight, order)
	if weight != f.weight {
		f.last = f.finish + parts(behind, weight)
	}
	f.last = max(f.last, f.finish)
	s.enterSum(f, weight)
	s.queue(f)
}

// Replace is for a flow that has another head, as the one before was cancelled or a more urgent
// call of the flow has come. It keeps S, and its F is not less: no flow may be overdue at once.
func (s *Sharing[O]) Replace(f *Flow[O], cost int64, order uint64) {
	s.unqueue(f)
	f.finish = max(f.finish, f.start+parts(cost, f.weight))
	f.last = max(f.last, f.finish)
	f.order = order
	s.enterSum(f, f.weight)
	s.queue(f)
}

// Grow is for a call that has joined behind the head.
func (s *Sharing[O]) Grow(f *Flow[O], cost int64) {
	f.last = max(f.last, s.v) + parts(cost, f.weight)
	s.enterSum(f, f.weight)
}

// Shrink is for a call that has gone from behind the head.
func (s *Sharing[O]) Shrink(f *Flow[O], cost int64) {
	f.last = max(f.last-parts(cost, f.weight), f.finish)
	s.shorten(f)
}

// Dry is for a flow that has no head any more. If its head has left, that is served in the
// fluid till the end; if not, the fluid stops where the head began.
func (s *Sharing[O]) Dry(f *Flow[O], left bool) {
	s.unqueue(f)
	f.waits = false
	s.waiting--
	f.last = f.finish
	if !left {
		f.last, f.finish = f.start, f.start
	}
	s.shorten(f)
	s.settle()
}

// Charge is for units of a flow that have left without asking. They are served to it, and to
// no other.
func (s *Sharing[O]) Charge(f *Flow[O], cost, weight int64) {
	s.owe(cost)
	more := parts(cost, weight)
	if !f.waits {
		before := s.v
		if f.at[inServed] > 0 {
			before = max(before, f.last)
		}
		f.start, f.finish, f.last = before, before+more, before+more
		s.enterSum(f, weight)
		return
	}
	s.unqueue(f)
	f.finish += more
	f.last += more
	s.enterSum(f, f.weight)
	s.queue(f)
}

// First returns the flow whose head is next, or nil.
func (s *Sharing[O]) First() *Flow[O] {
	if s.waiting == 0 {
		return nil
	}
	s.begin()
	if len(s.begun.flows) == 0 {
		s.jump(s.later.first().start)
		s.begin()
	}
	return s.begun.first()
}

// Passed reports whether the flow makes no difference any more: it has no head, and V has
// reached all its tags.
func (s *Sharing[O]) Passed(f *Flow[O]) bool { return !f.waits && f.at[inServed] == 0 }

func (s *Sharing[O]) owe(cost int64) {
	s.owed = min(s.owed, far) + min(cost, most)*unit
}

func (s *Sharing[O]) tag(f *Flow[O], start, cost, weight int64, order uint64) {
	f.start, f.finish, f.order = start, start+parts(cost, weight), order
}

// parts returns what V moves on by while a flow of the weight is served a cost, rounded up.
func parts(cost, weight int64) int64 {
	return (min(cost, most)*unit + weight - 1) / weight
}

// shorten has the flow leave the sum no later than its last tag says.
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

// begin moves the heads on that the fluid has begun with.
func (s *Sharing[O]) begin() {
	for len(s.later.flows) > 0 && s.later.first().start <= s.v {
		f := s.later.first()
		s.unqueue(f)
		s.queue(f)
	}
}
