package shaper

import (
	"math"
	"slices"
	"sync"
	"time"
)

// A call waits in the line for its answer. It gets exactly one for each time that it is in the
// line, when it is taken out of it; a caller that gives up takes the call out itself.
//
// A call is small, as there may be many: 64 bytes, beside those of the channel.
type call struct {
	prev, next *call
	cost       int64
	arrived    time.Duration // since the epoch
	deadline   time.Duration // since the epoch, or noDeadline
	caller     any           // told, woken or *timed

	waiting bool // in the line
	place   bool // it will be in flight
	refused bool // the answer; set before a caller is woken
	class   uint8
	seq     uint32 // in the order of joining
}

// Whom a call is for.
type (
	told  func(error)   // takes the answer; no caller waits
	woken chan struct{} // wakes the caller when there is an answer
	// timed is woken, or its timer wakes it when it is head of the line and due. Only the
	// head's is ever armed.
	timed struct {
		ready woken
		timer *time.Timer
	}
)

// done returns what is told the answer, nil if a caller waits for that.
func (c *call) done() func(error) {
	done, _ := c.caller.(told)
	return done
}

// ready returns the channel of the caller that waits, nil if there is none.
func (c *call) ready() woken {
	switch caller := c.caller.(type) {
	case woken:
		return caller
	case *timed:
		return caller.ready
	}
	return nil
}

// timer returns the one of the call, nil where something else is the alarm.
func (c *call) timer() *time.Timer {
	if caller, ok := c.caller.(*timed); ok {
		return caller.timer
	}
	return nil
}

const noDeadline = math.MaxInt64

// before reports whether the call joined before another one. The numbers start again after
// four thousand million calls.
func (c *call) before(other *call) bool { return int32(c.seq-other.seq) < 0 }

// expired returns the channel of the call's timer.
func (c *call) expired() <-chan time.Time {
	if t := c.timer(); t != nil {
		return t.C
	}
	return nil
}

// calls are those of a key, in the order in which they leave: a FIFO for each class, between
// which the rule of [WithClasses] decides. Any call can be unlinked.
type calls struct {
	head *call   // the next to leave
	last fifo    // of the least urgent class; as a rule there is no other
	more *[]fifo // of the others; see urgent
	rule *classRule

	units int64 // the sum of the costs
	len   int32
	dated int32 // calls with a deadline
}

type fifo struct {
	head, tail *call
	units      int64
}

// urgent returns those of all classes but the least urgent one, if such calls ever came.
func (l *calls) urgent() []fifo {
	if l.more == nil {
		return nil
	}
	return *l.more
}

func (l *calls) fifoOf(c *call) *fifo {
	if urgent := l.urgent(); int(c.class) < len(urgent) {
		return &urgent[c.class]
	}
	return &l.last
}

func (l *calls) push(c *call) {
	if l.more == nil && int(c.class) < l.rule.last {
		urgent := make([]fifo, l.rule.last)
		l.more = &urgent
	}
	l.fifoOf(c).push(c)
	c.waiting = true
	l.len++
	l.units += c.cost
	if c.deadline != noDeadline {
		l.dated++
	}
	if l.head == nil || l.leavesBefore(c, l.head) {
		l.head = c
	}
}

func (l *calls) remove(c *call) {
	l.fifoOf(c).remove(c)
	c.waiting = false
	l.len--
	l.units -= c.cost
	if c.deadline != noDeadline {
		l.dated--
	}
	if l.head == c {
		l.head = l.next()
	}
}

// next returns the call that leaves next.
func (l *calls) next() *call {
	next, urgent := l.last.head, l.urgent()
	for class := len(urgent) - 1; class >= 0; class-- {
		if c := urgent[class].head; c != nil && (next == nil || l.overtakes(c, next)) {
			next = c
		}
	}
	return next
}

// newest returns the call of the least urgent class that came last. There is one.
func (l *calls) newest() *call {
	if c := l.last.tail; c != nil {
		return c
	}
	urgent := l.urgent()
	for class := len(urgent) - 1; ; class-- {
		if c := urgent[class].tail; c != nil {
			return c
		}
	}
}

// oldest returns when the call arrived that has waited longest, which an urgent head need
// not be. There is one.
func (l *calls) oldest() time.Duration {
	arrived := l.head.arrived
	if c := l.last.head; c != nil {
		arrived = min(arrived, c.arrived)
	}
	for _, of := range l.urgent() {
		if c := of.head; c != nil {
			arrived = min(arrived, c.arrived)
		}
	}
	return arrived
}

// leavesBefore reports whether a newcomer leaves before a call that is there.
func (l *calls) leavesBefore(c, other *call) bool {
	switch {
	case c.class < other.class:
		return l.overtakes(c, other)
	case c.class > other.class:
		return !l.overtakes(other, c)
	}
	return c.arrived < other.arrived
}

// overtakes reports whether a call leaves before one that is less urgent.
func (l *calls) overtakes(c, other *call) bool {
	return c.arrived-other.arrived <= l.rule.lead(int(other.class)-int(c.class))
}

// ahead returns the units that leave before a newcomer of the class whose arrival counts as
// the given time since the epoch, as far as the line knows now.
func (l *calls) ahead(class uint8, arrived time.Duration) (units int64) {
	for i, of := range l.urgent() {
		units += of.unitsUntil(l.lastBefore(class, i, arrived))
	}
	return units + l.last.unitsUntil(l.lastBefore(class, l.rule.last, arrived))
}

// lastBefore returns the latest arrival in a class with which a call leaves before one of the
// given class and arrival that comes after it.
func (l *calls) lastBefore(class uint8, in int, arrived time.Duration) time.Duration {
	if below := in - int(class); below > 0 {
		lead := l.rule.lead(below)
		if lead == math.MaxInt64 {
			return math.MinInt64
		}
		return arrived - lead - 1
	}
	return laterBy(arrived, l.rule.lead(int(class)-in))
}

// unitsUntil returns the units of the calls that came by then.
func (f *fifo) unitsUntil(then time.Duration) (units int64) {
	if f.tail != nil && f.tail.arrived <= then {
		return f.units
	}
	for c := f.head; c != nil && c.arrived <= then; c = c.next {
		units += c.cost
	}
	return units
}

// ordered calls yield for each call in the order in which they leave, until it returns
// false. The call may be removed meanwhile.
func (l *calls) ordered(yield func(*call) bool) {
	urgent := slices.Clone(l.urgent())
	rest := calls{last: l.last, more: &urgent, rule: l.rule}
	for c := rest.next(); c != nil; c = rest.next() {
		rest.fifoOf(c).head = c.next
		if !yield(c) {
			return
		}
	}
}

// push has a call join behind those that came before it. One that came before all is common
// (a call that is made again), and there may be many behind it.
func (f *fifo) push(c *call) {
	c.prev, c.next = f.tail, nil
	if f.head != nil && c.arrived < f.head.arrived {
		c.prev, c.next = nil, f.head
	}
	for c.prev != nil && c.prev.arrived > c.arrived {
		c.prev, c.next = c.prev.prev, c.prev
	}
	f.link(c)
	f.units += c.cost
}

// link has the neighbours of a call know it.
func (f *fifo) link(c *call) {
	if c.prev == nil {
		f.head = c
	} else {
		c.prev.next = c
	}
	if c.next == nil {
		f.tail = c
	} else {
		c.next.prev = c
	}
}

func (f *fifo) remove(c *call) {
	if c.prev == nil {
		f.head = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		f.tail = c.prev
	} else {
		c.next.prev = c.prev
	}
	c.prev, c.next = nil, nil
	f.units -= c.cost
}

// A callPool keeps calls for later callers, so that waiting allocates nothing in the
// long run. Each Shaper has one of its own: channels and timers must not wander between
// synctest bubbles.
type callPool struct {
	calls sync.Pool
	timed bool // calls at the front of a line have a timer
}

// A caller that has a timer of its own is woken once, by that. Without one a goroutine is
// woken that wakes it. But a timer takes more memory than all the rest of a waiting call,
// and with so many in front of it a call has time to spare.
const frontOfLine = 1024

func (s *callPool) take(ahead int) *call {
	c, ok := s.calls.Get().(*call)
	if !ok {
		c = &call{caller: make(woken, 1)}
	}
	if s.timed && ahead < frontOfLine && c.timer() == nil {
		t := &timed{c.ready(), time.NewTimer(0)}
		t.timer.Stop()
		c.caller = t
	}
	return c
}

// A spare is calls for which no caller has waited, to be used again. Each line has its own, under
// its lock: the cancel function of one that is over may still come, and must find by the number
// of the call that it is another one now.
type spare struct {
	first *call
	len   int
}

const mostSpare = 256

func (s *spare) take(done func(error)) *call {
	c := s.first
	if c == nil {
		return &call{caller: told(done)}
	}
	s.first, c.next, c.caller = c.next, nil, told(done)
	s.len--
	return c
}

func (s *spare) put(c *call) {
	if c.caller = nil; s.len < mostSpare {
		c.next, s.first = s.first, c
		s.len++
	}
}

// put takes back a call that is not in the line and whose answer was read.
func (s *callPool) put(c *call) { s.calls.Put(c) }
