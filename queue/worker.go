package queue

// hireLocked starts workers for jobs that are not claimed, as far as the limit allows.
func (q *Queue) hireLocked() {
	for q.hired < q.workers && q.claimLocked() {
		q.hired++
		go q.work()
	}
}

// claimLocked allows the caller to wait for one slot, if there is a job for it.
func (q *Queue) claimLocked() bool {
	if q.state == closed || q.claims >= q.line.len() {
		return false
	}
	q.claims++
	return true
}

// work is the life of one worker. It begins with a claim and ends when there is nothing
// left to claim, or when user code calls Goexit; retire sees to both.
func (q *Queue) work() {
	defer q.retire()
	for q.serve() {
	}
}

// serve turns one claim into one job that has run, and reports whether the worker has a
// claim again.
func (q *Queue) serve() bool {
	var job Job
	var slot slot
	defer slot.release()
	contain(
		func() error { return slot.obtain(q.slots, q.waiter) },
		func(err error) { job = q.take(err) },
	)
	if job == nil {
		return false
	}
	contain(func() error { return job(q.jobs) }, q.settle)

	q.mu.Lock()
	defer q.mu.Unlock()
	return q.claimLocked()
}

// take ends a claim. If the slot was obtained it returns the job at the head of the line,
// which runs from now on.
func (q *Queue) take(err error) Job {
	q.mu.Lock()
	q.claims--
	switch {
	case q.state == closed:
		// The line is handed back or about to be. A slot that was granted in the same
		// moment is forfeited; a job is not.
		q.mu.Unlock()
		return nil
	case err != nil:
		// The slots context ends only after the queue is closed, so this error is the
		// Waiter's and it is final. The jobs stay in the line for Shutdown to hand back.
		q.failure = err
		q.state = closed
		q.refuseLocked()
		q.mu.Unlock()
		q.endSlots(err)
		q.report(err)
		return nil
	}
	job := q.line.pop()
	q.running++
	q.admitLocked()
	q.mu.Unlock()
	return job
}

// settle counts the outcome of a job and reports a failure. It runs before the worker
// leaves, also after a Goexit, so that Shutdown returns after the last report.
func (q *Queue) settle(err error) {
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

// retire counts a worker out and replaces it if it was ended by Goexit while there was
// work.
func (q *Queue) retire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.hired--
	q.hireLocked()
	q.quiesceLocked()
}
