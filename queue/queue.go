package queue

import (
	"container/list"
	"context"
	"sync"
)

// A Job is one piece of work. Its ctx is cancelled when the queue gives up on it: when
// the ctx of [Queue.Shutdown] ends, or on [Queue.Close]; context.Cause then tells why. It
// also ends after the last job has. In [Drain] it is the ctx that Drain was called with.
type Job func(ctx context.Context) error

// A Queue starts jobs in the order of their submission, each in a slot of its own that a
// [Waiter] grants. Make one with [New], hand it jobs with [Queue.Submit], and end it with
// [Queue.Shutdown].
//
// Jobs leave the line in order. Jobs whose slots are granted at the same instant to
// several workers begin at the same instant, and which of them executes its first
// statement first is up to the scheduler of Go.
//
// The zero Queue accepts nothing and says so.
//
// All methods may be called from any number of goroutines. A job may call them too, but
// it should submit with [Queue.TrySubmit], as Submit could wait for room that only this
// very job's end would make; and a job that waits for Shutdown waits for itself until the
// ctx of Shutdown ends.
type Queue struct {
	config
	waiter Waiter

	// running jobs see jobs; workers that wait for a slot see slots, its child. A Waiter
	// that fails for good ends only slots, the end of Shutdown's patience ends both.
	jobs      context.Context
	slots     context.Context
	endJobs   context.CancelCauseFunc
	endSlots  context.CancelCauseFunc
	quiescent chan struct{} // closed when no job will start any more and all workers have left

	// mu guards all fields below it. It is held for a few assignments: never while a
	// Waiter, a Source, a job or an error handler runs, and never across a channel
	// operation that could block.
	mu      sync.Mutex
	state   state
	failure error     // the Waiter's final error
	line    line      // accepted jobs that have not started
	blocked list.List // of *submission, oldest first; empty unless the line is full
	claims  int       // workers that wait for a slot on behalf of a job; at most line.len()
	hired   int       // worker goroutines that live

	submitted, done, failed, returned, running int64
}

// submission is a blocked call of Submit.
type submission struct {
	job     Job
	decided chan struct{} // closed under the lock once err is final
	err     error         // nil: the job was accepted
}

// New returns a queue that starts its jobs at the pace of w. It fails if w is nil or an
// option is out of range.
func New(w Waiter, opts ...Option) (*Queue, error) {
	if w == nil {
		return nil, errNilWaiter
	}
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	q := &Queue{config: c, waiter: w, quiescent: make(chan struct{})}
	q.jobs, q.endJobs = context.WithCancelCause(context.Background())
	q.slots, q.endSlots = context.WithCancelCause(q.jobs)
	return q, nil
}

// Submit adds j to the end of the line. While the line is full it blocks; blocked calls
// enter in the order in which they came. A nil error means that j was accepted: it will
// run or be handed back, even if ctx ends now. ctx governs only the wait for room; the
// job gets a context of the queue's own.
//
// If Submit returns an error, j was not accepted and will not run. The error is that of
// ctx if it ended first, [ErrClosed] if the queue was shut down, or the error of a Waiter
// that failed for good.
func (q *Queue) Submit(ctx context.Context, j Job) error {
	switch {
	case ctx == nil:
		return errNilContext
	case j == nil:
		return errNilJob
	case ctx.Err() != nil:
		return ctx.Err()
	}

	q.mu.Lock()
	if err := q.acceptLocked(j); err != ErrFull {
		q.mu.Unlock()
		return err
	}
	s := &submission{job: j, decided: make(chan struct{})}
	place := q.blocked.PushBack(s)
	q.mu.Unlock()

	select {
	case <-s.decided:
		return s.err
	case <-ctx.Done():
	}

	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-s.decided:
		// The decision came first, and it stands: the job may be running by now.
		return s.err
	default:
		q.blocked.Remove(place)
		return ctx.Err()
	}
}

// TrySubmit is Submit without the wait: if the line is full it returns [ErrFull] at once.
func (q *Queue) TrySubmit(j Job) error {
	if j == nil {
		return errNilJob
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.acceptLocked(j)
}

// acceptLocked puts j into the line, or returns why not.
func (q *Queue) acceptLocked(j Job) error {
	switch {
	case q.waiter == nil:
		return errZeroQueue
	case q.state != open:
		return q.refusalLocked()
	case q.line.len() >= q.capacity:
		// A blocked Submit keeps the line full until its job is in, so no newcomer
		// overtakes it.
		return ErrFull
	}
	q.enterLocked(j)
	return nil
}

func (q *Queue) enterLocked(j Job) {
	q.submitted++
	q.line.push(j)
	q.hireLocked()
}

// admitLocked gives room in the line to blocked calls of Submit.
func (q *Queue) admitLocked() {
	for q.blocked.Len() > 0 && q.line.len() < q.capacity {
		s := q.blocked.Remove(q.blocked.Front()).(*submission)
		q.enterLocked(s.job)
		close(s.decided)
	}
}

// refuseLocked turns away all blocked calls of Submit.
func (q *Queue) refuseLocked() {
	for q.blocked.Len() > 0 {
		s := q.blocked.Remove(q.blocked.Front()).(*submission)
		s.err = q.refusalLocked()
		close(s.decided)
	}
}

// refusalLocked is what Submit returns once the queue is not open.
func (q *Queue) refusalLocked() error {
	if q.failure != nil {
		return q.failure
	}
	return ErrClosed
}
