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
// A call is small, as there may be many: 64 bytes, beside those of the channel.
type call struct {
	prev, next *call
	cost       int64
	arrived    time.Duration // since the epoch
	deadline   time.Duration // since the epoch, or noDeadline
	ready      chan struct{}

	// timer wakes the caller when it is head of the line and due. Only the head's is ever
	// armed. Where something else is the alarm it is nil.
	timer *time.Timer

	waiting bool // in the line
	place   bool // it will be in flight
	refused bool // the answer; set before ready gets its value
}

const noDeadline = math.MaxInt64

// answer tells the caller that the call has left, or was refused. It never blocks: the
// channel has room for one value, and there is one answer.
func (c *call) answer(refused bool) {
	c.refused = refused
	c.ready <- struct{}{}
}

// expired returns the channel of the call's timer.
func (c *call) expired() <-chan time.Time {
	if c.timer == nil {
		return nil
	}
	return c.timer.C
}

// A line is a FIFO of calls from which any can be unlinked.
type line struct {
	head, tail *call
	len        int
	units      int64 // the sum of the costs
	dated      int   // calls with a deadline
}

// fits reports whether a sum of costs can take one more.
func (l *line) fits(cost int64) bool { return cost <= math.MaxInt64-l.units }

func (l *line) push(c *call) {
	c.waiting = true
	c.prev, c.next = l.tail, nil
	if l.tail == nil {
		l.head = c
	} else {
		l.tail.next = c
	}
	l.tail = c
	l.len++
	l.units += c.cost
	if c.deadline != noDeadline {
		l.dated++
	}
}

func (l *line) remove(c *call) {
	if c.prev == nil {
		l.head = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		l.tail = c.prev
	} else {
		c.next.prev = c.prev
	}
	c.prev, c.next = nil, nil
	c.waiting = false
	l.len--
	l.units -= c.cost
	if c.deadline != noDeadline {
		l.dated--
	}
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
