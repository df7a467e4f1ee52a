package queue

import (
	"errors"
)

// run is the life of a goroutine that runs a job. The job has a place in flight until it ends,
// with its last report.
func (q *Queue[T]) run(e *entry[T]) {
	key := e.key // the job may run again before this goroutine ends
	defer q.leave(key)
	contain(func() error { return q.handle(q.jobs, e.item) }, func(err error) { q.settle(e, err) })
}

// settle counts the outcome of a job and reports a failure. It runs before the goroutine leaves,
// also after a Goexit, so that Shutdown returns after the last report.
func (q *Queue[T]) settle(e *entry[T], err error) {
	if a, ok := errors.AsType[*again](err); ok {
		q.comeAgain(e, a)
		return
	}
	q.mu.Lock()
	q.running--
	if err == nil {
		q.done++
	} else {
		q.failed++
	}
	q.mu.Unlock()
	if err != nil {
		q.report(err)
	}
}

// comeAgain has a job wait for its next run.
func (q *Queue[T]) comeAgain(e *entry[T], a *again) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running--
	if q.closing {
		q.returned++
		q.tellLocked(&UnrunError[T]{Item: e.item, Err: ErrClosed})
		return
	}
	e.begun, e.again = false, true
	q.unstarted.add(e)
	q.reenterLocked(e)
	if q.state != closed {
		q.delayLocked(e, after(q.now(), max(a.after, 0)))
	}
}

// leave gives back the place of a job that has ended.
func (q *Queue[T]) leave(key string) {
	defer q.retire()
	q.group.Release(key)
}

// retire counts a goroutine out.
func (q *Queue[T]) retire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.alive--
	q.quiesceLocked()
}

// untold are the errors that a goroutine tells the error handler in their order, as what has
// found them out must not block. It exists while there are any.
type untold struct {
	errs    []error
	telling bool
}

func (q *Queue[T]) tellLocked(err error) {
	q.untold.errs = append(q.untold.errs, err)
	if !q.untold.telling {
		q.untold.telling = true
		q.alive++
		go q.tell()
	}
}

func (q *Queue[T]) tell() {
	gone := true
	defer func() {
		if gone { // the handler has called Goexit
			go q.tell()
			return
		}
		q.retire()
	}()
	for {
		q.mu.Lock()
		if len(q.untold.errs) == 0 {
			q.untold = untold{}
			gone = false
			q.mu.Unlock()
			return
		}
		err := q.untold.errs[0]
		q.untold.errs = q.untold.errs[1:]
		q.mu.Unlock()
		q.report(err)
	}
}
