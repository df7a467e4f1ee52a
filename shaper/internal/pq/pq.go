// Package pq is a priority queue of things that know where they are in it, so that any of them
// can be moved or taken out. It is a heap of keys, so to compare two things it need not look at
// them, unless their keys are equal. With container/heap, which compares and swaps through an
// interface, a departure beside ten thousand waiting flows takes half as long again.
package pq

// A Queue is a priority queue by key, the least first. It is not safe for concurrent use.
type Queue[T any] struct {
	all    []entry[T]
	before func(a, b *T) bool
	at     func(*T) *int32
}

// arity is how many entries stand below each. What moves is told where it is, which waits for
// memory, and with four of them the way is half as long as with two.
const arity = 4

type entry[T any] struct {
	key int64
	is  *T
}

// New returns an empty queue, in which a goes before b of the same key if before says so. What
// at points to is where a thing keeps its place, 0 at first. It is the queue's own, and 0 for
// what is in no queue: a thing that is in one queue at a time needs but one.
func New[T any](before func(a, b *T) bool, at func(*T) *int32) *Queue[T] {
	return &Queue[T]{before: before, at: at}
}

// First returns what goes first, or nil.
func (q *Queue[T]) First() *T {
	if len(q.all) == 0 {
		return nil
	}
	return q.all[0].is
}

// Each calls visit for all that is in the queue, in no order, until it returns false. The queue
// must not change meanwhile.
func (q *Queue[T]) Each(visit func(*T) bool) {
	for _, e := range q.all {
		if !visit(e.is) {
			return
		}
	}
}

// Put has x be in the queue with the key, at the place that is right now.
func (q *Queue[T]) Put(x *T, key int64) {
	i := int(*q.at(x)) - 1
	if i < 0 {
		i = len(q.all)
		q.all = append(q.all, entry[T]{})
	}
	q.settle(i, entry[T]{key, x})
}

// Remove has x not be in the queue.
func (q *Queue[T]) Remove(x *T) {
	at := q.at(x)
	if *at == 0 {
		return
	}
	i, last := int(*at-1), len(q.all)-1
	moved := q.all[last]
	q.all[last] = entry[T]{}
	q.all = q.all[:last]
	*at = 0
	if i < last {
		q.settle(i, moved)
	}
}

// Shift adds to all keys, which changes no order.
func (q *Queue[T]) Shift(by int64) {
	for i := range q.all {
		q.all[i].key += by
	}
}

// settle puts an entry in its place, for which there is room at i.
func (q *Queue[T]) settle(i int, e entry[T]) {
	for i > 0 && q.less(e, q.all[(i-1)/arity]) {
		q.set(i, q.all[(i-1)/arity])
		i = (i - 1) / arity
	}
	for child := arity*i + 1; child < len(q.all); child = arity*i + 1 {
		least := child
		for child++; child < min(arity*i+1+arity, len(q.all)); child++ {
			if q.less(q.all[child], q.all[least]) {
				least = child
			}
		}
		if !q.less(q.all[least], e) {
			break
		}
		q.set(i, q.all[least])
		i = least
	}
	q.set(i, e)
}

func (q *Queue[T]) less(a, b entry[T]) bool {
	return a.key < b.key || a.key == b.key && q.before(a.is, b.is)
}

func (q *Queue[T]) set(i int, e entry[T]) {
	q.all[i] = e
	*q.at(e.is) = int32(i + 1)
}
