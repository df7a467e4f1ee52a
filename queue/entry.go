package queue

import (
	"cmp"
	"time"
)

// An entry is a job until it has ended. A waiting one is small, as there may be many.
type entry[T any] struct {
	prev, next *entry[T] // in the list of those that have not started
	queue      *Queue[T]
	item       T
	key        string
	cost       int64
	arrived    time.Duration // that counts for its place in the line
	notAfter   time.Duration
	class      uint8
	delayed    bool // its room is among the delayed ones
	ofKey      bool // it has room of its key, too
	late       bool // it is among those that the line has refused for now
	refused    bool // it was, when it was tried last
	begun      bool // it has started
	gone       bool // it was handed back, and does not start
	again      bool // it has run, and stands before those of its instant
}

// compare tells where a job stands among those of its key and class, which is before another
// one if it is less than 0. One that comes again stands before all others of the instant at which
// it came first.
func (e *entry[T]) compare(other *entry[T]) int {
	if e.arrived == other.arrived && e.again != other.again {
		if e.again {
			return -1
		}
		return 1
	}
	return cmp.Compare(e.arrived, other.arrived)
}

// A list has the jobs that have not started. It is for handing them back: it tells no order.
type list[T any] struct {
	head, tail *entry[T]
	len        int
}

func (l *list[T]) add(e *entry[T]) {
	e.prev, e.next = l.tail, nil
	if l.tail == nil {
		l.head = e
	} else {
		l.tail.next = e
	}
	l.tail = e
	l.len++
}

func (l *list[T]) remove(e *entry[T]) {
	if e.prev == nil {
		l.head = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.tail = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
	l.len--
}
