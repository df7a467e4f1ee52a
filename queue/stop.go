package queue

import (
	"context"
	"fmt"
	"slices"
)

// state is drawn in the package documentation. It only ever moves forward.
type state int

const (
	open     state = iota // items are accepted, and jobs start
	draining              // items are refused, and jobs start
	closed                // items are refused, and jobs do not start
)

// Stop has nothing start any more, and hands back now what has not started, delayed jobs
// included, in the order of the line: by arrival, which for a job with [NotBefore] is that
// instant. What runs goes on, its context included: [Queue.Shutdown] waits for it.
//
// A job that asks to run [Again] after that is handed back by Shutdown.
//
// Stopping twice, or after Shutdown, does nothing.
func (q *Queue[T]) Stop() []T {
	if q.group == nil {
		return nil // a zero Queue has nothing to stop
	}
	q.refuse()
	return q.close()
}

// Shutdown refuses new items, including those of callers blocked in Submit, and lets the
// jobs start at their pace, delayed ones included. It returns when the last job has ended and
// its error was reported, or when ctx ends.
//
// If ctx ends first, the jobs that have not started are handed back as by [Queue.Stop], together
// with the error of ctx, and the contexts of the running ones are cancelled. Shutdown does not
// wait for these: a job that ignores its context would hold it forever. To wait for them, call
// Shutdown again.
//
// So after Shutdown every accepted job has run, has expired, is running (only if ctx ended), or
// was handed back exactly once. A nil error means that none of them was handed back. If the line
// was closed, the error is that of the line, and the jobs that had not started are handed back.
//
// Shutdown may be called again and concurrently with any method. It then waits for the same end,
// also with a ctx that is more or less patient; the first ctx to end gets the jobs, and the
// others get none of them and [ErrClosed].
func (q *Queue[T]) Shutdown(ctx context.Context) (unrun []T, err error) {
	switch {
	case ctx == nil:
		return nil, errNilContext
	case q.group == nil:
		return nil, errZeroQueue
	}
	q.refuse()
	select {
	case <-q.quiescent:
	case <-ctx.Done():
		// Both may be ready; end looks whether anything was cut off.
	}
	return q.end(ctx.Err(), context.Cause(ctx))
}

// Close is Shutdown without any patience: it refuses new items, starts no further job, cancels
// the contexts of the running ones, and returns without waiting for them. The jobs that have not
// started go to the error handler, each as an [*UnrunError] and in the order in which Stop would
// have handed them back.
//
// Close always returns nil. Closing twice, or after Shutdown, does nothing.
func (q *Queue[T]) Close() error {
	if q.group == nil {
		return nil // a zero Queue has nothing to close
	}
	q.refuse()
	q.mu.Lock()
	q.closing = true
	q.mu.Unlock()
	unrun, err := q.end(ErrClosed, ErrClosed)
	q.reportUnrun(unrun, err)
	return nil
}

// reportUnrun reports all jobs, also if the error handler ends the goroutine over one.
func (q *Queue[T]) reportUnrun(items []T, err error) {
	told := 0
	defer func() {
		if told < len(items) {
			q.reportUnrun(items[told:], err)
		}
	}()
	for told < len(items) {
		told++
		q.report(&UnrunError[T]{Item: items[told-1], Err: err})
	}
}

// refuse ends the open state.
func (q *Queue[T]) refuse() {
	q.mu.Lock()
	q.state = max(q.state, draining)
	q.quiesceLocked()
	q.mu.Unlock()
	q.refusing()
}

// quiesceLocked notices that all is over. It is called whenever that may be so.
func (q *Queue[T]) quiesceLocked() {
	if q.alive > 0 || q.state == open || q.state == draining && q.unstarted.len > 0 {
		return
	}
	q.state = closed
	select {
	case <-q.quiescent:
	default:
		close(q.quiescent)
	}
}

// end closes the queue. If jobs still run, cut is the error that says why they were cut off, and
// cause is what they find in context.Cause.
func (q *Queue[T]) end(cut, cause error) (unrun []T, err error) {
	unrun = q.close()
	q.mu.Lock()
	switch {
	case q.failure != nil:
		err = q.failure
	case cut != nil && (q.alive > 0 || len(unrun) > 0):
		err = cut
	case q.returned > 0:
		err = ErrClosed
	}
	q.mu.Unlock()
	q.endJobs(cause)
	return unrun, err
}

// close has nothing start any more and returns what has not.
func (q *Queue[T]) close() []T {
	q.mu.Lock()
	q.state = closed
	entries := q.takeLocked(func(T) bool { return true })
	q.alarm.stop()
	q.quiesceLocked()
	q.mu.Unlock()
	_ = q.group.Close() // its keys' schedules are the user's; there is no one to be told
	return items(entries)
}

// takeLocked takes out jobs that have not started, in the order of the line. They will not.
func (q *Queue[T]) takeLocked(which func(T) bool) (taken []*entry[T]) {
	var next *entry[T]
	for e := q.unstarted.head; e != nil; e = next {
		next = e.next
		if which(e.item) {
			q.unstarted.remove(e)
			q.vacateLocked(e)
			e.gone = true
			taken = append(taken, e)
		}
	}
	q.delayed.dropGone()
	q.late.dropGone()
	q.returned += int64(len(taken))
	slices.SortStableFunc(taken, (*entry[T]).compare)
	return taken
}

func items[T any](entries []*entry[T]) []T {
	var items []T
	for _, e := range entries {
		items = append(items, e.item)
	}
	return items
}

// failLocked is for a line that was closed. What waits is kept for Shutdown to hand back.
func (q *Queue[T]) failLocked(err error) {
	q.failure = fmt.Errorf("queue: line: %w", err)
	q.state = closed
	q.alarm.stop()
	q.refusing()
	q.tellLocked(q.failure)
}
