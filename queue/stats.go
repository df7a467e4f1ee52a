package queue

// Stats is a snapshot of a [Queue]. Its numbers belong to one moment, so always
//
//	Submitted = Waiting + Running + Done + Failed + Returned
type Stats struct {
	Submitted int64 // jobs accepted so far
	Done      int64 // jobs that returned nil
	Failed    int64 // jobs that returned an error, panicked, or called runtime.Goexit
	Returned  int64 // jobs handed back unrun by Shutdown, or reported as unrun by Close
	Waiting   int64 // jobs in the line now
	Running   int64 // jobs that run now
	Blocked   int64 // calls of Submit that wait for room now; their jobs are not accepted yet
}

// Stats returns a consistent snapshot.
func (q *Queue) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Stats{
		Submitted: q.submitted,
		Done:      q.done,
		Failed:    q.failed,
		Returned:  q.returned,
		Waiting:   int64(q.line.len()),
		Running:   q.running,
		Blocked:   int64(q.blocked.Len()),
	}
}
