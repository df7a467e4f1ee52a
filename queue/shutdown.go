package queue

import "context"

// state is drawn in the package documentation. It only ever moves forward.
type state int

const (
	open     state = iota // jobs are accepted and start
	draining              // jobs are refused and start
	closed                // jobs are refused and do not start
)

// Shutdown refuses new jobs, including those of callers blocked in Submit, and lets the
// line drain at its pace. It returns when the last job has ended and its error was
// reported, or when ctx ends.
//
// If ctx ends first, the jobs that have not started are handed back in the order of
// submission together with the error of ctx, and the contexts of the running ones are
// cancelled. Shutdown does not wait for these: a job that ignores its context would hold
// it forever. To wait for them, call Shutdown again.
//
// So after Shutdown every accepted job has run, is running (only if ctx ended), or was
// handed back exactly once. A nil error means that all of them have run. If the Waiter
// failed for good, the error is the Waiter's and the jobs that had not started are handed
// back.
//
// Shutdown may be called again and concurrently with any method. It then waits for the
// same end, also with a ctx that is more or less patient; the first ctx to end gets the
// jobs, and the others get none of them and ErrClosed.
func (q *Queue) Shutdown(ctx context.Context) (unrun []Job, err error) {
	switch {
	case ctx == nil:
		return nil, errNilContext
	case q.waiter == nil:
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

// Close is Shutdown without any patience: it refuses new jobs, starts no further one,
// cancels the contexts of the running ones, and returns without waiting for them. The
// jobs that have not started go to the error handler, each as an [*UnrunError] and in the
// order of submission; to have them back as a slice, call [Queue.Shutdown] instead.
//
// Close always returns nil. Closing twice, or after Shutdown, does nothing.
func (q *Queue) Close() error {
	if q.waiter == nil {
		return nil // a zero Queue has nothing to close
	}
	q.refuse()
	unrun, err := q.end(ErrClosed, ErrClosed)
	q.reportUnrun(unrun, err)
	return nil
}

// reportUnrun reports all jobs, also if the error handler ends the goroutine over one.
func (q *Queue) reportUnrun(jobs []Job, err error) {
	told := 0
	defer func() {
		if told < len(jobs) {
			q.reportUnrun(jobs[told:], err)
		}
	}()
	for told < len(jobs) {
		told++
		q.report(&UnrunError{Job: jobs[told-1], Err: err})
	}
}

// refuse ends the open state.
func (q *Queue) refuse() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.state != open {
		return
	}
	q.state = draining
	q.refuseLocked()
	q.quiesceLocked()
}

// quiesceLocked notices that all is over. It is called whenever the queue leaves the open
// state or a worker leaves.
func (q *Queue) quiesceLocked() {
	// While jobs may start there are workers as long as there are jobs, so without
	// workers the line is empty. In the closed state no worker is hired. Either way the
	// last worker leaves only once.
	if q.state == open || q.hired > 0 {
		return
	}
	q.state = closed
	close(q.quiescent)
}

// end closes the queue. If workers are still there, cut is the error that says why they
// were cut off, and cause is what running jobs find in context.Cause.
func (q *Queue) end(cut, cause error) (unrun []Job, err error) {
	q.mu.Lock()
	q.state = closed
	unrun = q.line.takeAll()
	handedBack := q.returned
	q.returned += int64(len(unrun))
	switch {
	case q.failure != nil:
		err = q.failure
	case q.hired > 0:
		err = cut
	case handedBack > 0:
		err = ErrClosed
	}
	q.mu.Unlock()

	q.endJobs(cause) // and with it the waits for slots
	return unrun, err
}
