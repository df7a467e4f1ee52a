package shaper

import (
	"math"
	"sync"
	"time"
)

// A call waits in the line for its answer. Its ready channel gets exactly one
// value for each time that the call is in the line, when it is taken out of it
// with an answer; a caller that gives up takes the call out itself.
//
// A call is small, as there may be many: 72 bytes, beside those of the channel.
type call struct {
	prev, next *call
	cost       int64
	arrived    time.Duration // since the epoch
	deadline   time.Duration // since the epoch, or noDeadline
	ready      chan struct{} // nil: no caller waits

	// done takes the answer where no caller waits for it.
	done func(error)

	// timer wakes the caller when it is head of the line and due. Only the head's is ever
	// armed. Where something else is the alarm it is nil.
	timer *time.Timer

	waiting bool // in the line
	place   bool // it will be in flight
	refused bool // the answer; set before ready gets its value
	class   uint8
	seq     uint32 // in the order of joining
}

const noDeadline = math.MaxInt64

// before reports whether the call joined before another one. The numbers start again after
// four thousand million calls.
func (c *call) before(other *call) bool { return int32(c.seq-other.seq) < 0 }

// expired returns the channel of the call's timer.
func (c *call) expired() <-chan time.Time {
	if c.timer == nil {
		return nil
	}
	return c.timer.C
}

// calls are those of a key, in the order in which they leave: a FIFO for each class, between
// which the rule of [WithClasses] decides. Any call can be unlinked.
type calls struct {
	head   *call // the next to leave
	last   fifo  // of the least urgent class; as a rule there is no other
	urgent []fifo
	rule   *classRule

	len   int
	units int64 // the sum of the costs
	dated int   // calls with a deadline
}

type fifo struct {
	head, tail *call
	units      int64
}

func (l *calls) fifoOf(c *call) *fifo {
	if int(c.class) < len(l.urgent) {
		return &l.urgent[c.class]
	}
	return &l.last
}

func (l *calls) push(c *call) {
	if l.urgent == nil && int(c.class) < l.rule.last {
		l.urgent = make([]fifo, l.rule.last)
	}
	l.fifoOf(c).push(c)
	c.waiting = true
	l.len++
	l.units += c.cost
	if c.deadline != noDeadline {
		l.dated++
	}
	if l.head == nil || c.class < l.head.class && l.overtakes(c, l.head) {
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
	next := l.last.head
	for class := len(l.urgent) - 1; class >= 0; class-- {
		if c := l.urgent[class].head; c != nil && (next == nil || l.overtakes(c, next)) {
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
	for class := len(l.urgent) - 1; ; class-- {
		if c := l.urgent[class].tail; c != nil {
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
	for i := range l.urgent {
		if c := l.urgent[i].head; c != nil {
			arrived = min(arrived, c.arrived)
		}
	}
	return arrived
}

// overtakes reports whether a call leaves before one that is less urgent.
func (l *calls) overtakes(c, other *call) bool {
	return c.arrived-other.arrived <= l.rule.lead(int(other.class)-int(c.class))
}

// ahead returns the units that leave before a call of the class that comes at the given
// time since the epoch, as far as the line knows now.
func (l *calls) ahead(class uint8, now time.Duration) (units int64) {
	if int(class) == l.rule.last {
		return l.units
	}
	for i := range l.urgent {
		if i <= int(class) {
			units += l.urgent[i].units
		} else {
			units += l.urgent[i].unitsBefore(now, l.rule.lead(i-int(class)))
		}
	}
	return units + l.last.unitsBefore(now, l.rule.lead(l.rule.last-int(class)))
}

// unitsBefore returns those of the calls that came more than lead before now.
func (f *fifo) unitsBefore(now, lead time.Duration) (units int64) {
	for c := f.head; c != nil && now-c.arrived > lead; c = c.next {
		units += c.cost
	}
	return units
}

// ordered calls yield for each call in the order in which they leave, until it returns
// false. The call may be removed meanwhile.
func (l *calls) ordered(yield func(*call) bool) {
	rest := calls{last: l.last, urgent: append([]fifo(nil), l.urgent...), rule: l.rule}
	for c := rest.next(); c != nil; c = rest.next() {
		rest.fifoOf(c).head = c.next
		if !yield(c) {
			return
		}
	}
}

func (f *fifo) push(c *call) {
	c.prev, c.next = f.tail, nil
	if f.tail == nil {
		f.head = c
	} else {
		f.tail.next = c
	}
	f.tail = c
	f.units += c.cost
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

func (s *callPool) take(ahead int, done func(error)) *call {
	if done != nil {
		return &call{done: done} // its cancel may come at any time, so it is for no other caller
	}
	c, ok := s.calls.Get().(*call)
	if !ok {
		c = &call{ready: make(chan struct{}, 1)}
	}
	if c.timer == nil && s.timed && ahead < frontOfLine {
		c.timer = time.NewTimer(0)
		c.timer.Stop()
	}
	return c
}

// put takes back a call that is not in the line and whose answer was read.
func (s *callPool) put(c *call) { s.calls.Put(c) }
