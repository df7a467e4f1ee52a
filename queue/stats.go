package queue

// Stats is a snapshot of a [Queue]. Its numbers belong to one moment, so always
//
//	Submitted = Waiting + Delayed + Running + Done + Failed + Expired + Returned
type Stats struct {
	Submitted int64 // jobs accepted so far
	Done      int64 // jobs that returned nil
	Failed    int64 // jobs that returned an error, panicked, or called runtime.Goexit
	Expired   int64 // jobs that would have started after their NotAfter
	Returned  int64 // jobs handed back by Stop or Shutdown, or told as unrun by Close, or as they could never leave
	Waiting   int64 // jobs that wait for their slot, or a worker, now
	Delayed   int64 // jobs that are to come to the line, or to come again, later
	Running   int64 // jobs that run now
	Blocked   int64 // calls of Submit that wait for room now; their items are not accepted yet
}

// Stats returns a consistent snapshot.
func (q *Queue[T]) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	delayed := int64(len(q.delayed))
	return Stats{
		Submitted: q.submitted,
		Done:      q.done,
		Failed:    q.failed,
		Expired:   q.expired,
		Returned:  q.returned,
		Waiting:   int64(q.unstarted.len) - delayed,
		Delayed:   delayed,
		Running:   q.running,
		Blocked:   q.blocked,
	}
}
