package queue

import (
	"errors"
	"time"

	"github.com/sluice-go/sluice/internal/reason"
	"github.com/sluice-go/sluice/shaper"
)

// join has a job be a call in the line. It returns an error if the job was submitted only now and
// can never leave: it is none then.
func (q *Queue[T]) join(e *entry[T], now bool) error {
	arrived := e.arrived
	if !e.again {
		arrived = after(arrived, 1) // a call stands just before its Arrived: behind others of the instant
	}
	call := shaper.Call{Cost: int(e.cost), Class: int(e.class), Arrived: q.at(arrived), InFlight: true}
	if e.notAfter != never {
		call.Deadline = q.at(e.notAfter)
	}
	done := false
	defer func() {
		if !done { // a function of the user's has panicked, such as that of WithWeights
			q.mu.Lock()
			defer q.mu.Unlock()
			if !e.begun && !e.gone {
				_ = q.rejectLocked(e, nil, true)
			}
		}
	}()
	cancel, err := q.group.Enqueue(e.key, call, e.answered)
	done = true
	if err != nil {
		return q.refused(e, err, now)
	}
	if q.calls != nil {
		q.keep(e, cancel)
	}
	return nil
}

// answered is the function that the line tells. It must not block.
func (e *entry[T]) answered(err error) {
	q := e.queue
	if err != nil {
		_ = q.refused(e, err, false)
		return
	}
	q.mu.Lock()
	if e.gone || q.state == closed {
		// It is handed back, or about to be. A slot that was granted in the same moment is
		// forfeited; a job is not.
		q.mu.Unlock()
		q.group.Release(e.key)
		return
	}
	q.unstarted.remove(e)
	q.vacateLocked(e)
	e.begun = true
	q.late.remove(e)
	delete(q.calls, e)
	q.running++
	q.alive++
	waits := q.late.has(e.key)
	q.mu.Unlock()
	go q.run(e)
	if waits {
		q.retry(e.key)
	}
}

// refused is for a job that the line has turned away, for now or for good.
func (q *Queue[T]) refused(e *entry[T], err error, submitted bool) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e.gone || q.state == closed {
		return nil
	}
	switch reason.Label(err) {
	case "closed":
		q.failLocked(err)
	case "deadline":
		q.expireLocked(e)
	case "cost":
		return q.rejectLocked(e, err, submitted)
	default:
		if submitted && comeAgain(err) <= 0 {
			return q.rejectLocked(e, err, true)
		}
		q.lateLocked(e)
	}
	return nil
}

// rejectLocked is for a job that can never leave.
func (q *Queue[T]) rejectLocked(e *entry[T], err error, submitted bool) error {
	q.unstarted.remove(e)
	q.vacateLocked(e)
	q.late.remove(e)
	e.gone = true
	if submitted {
		q.submitted--
		q.quiesceLocked()
		return err
	}
	q.returned++
	q.tellLocked(&UnrunError[T]{Item: e.item, Err: err})
	return nil
}

// expireLocked is for a job that would start too late.
func (q *Queue[T]) expireLocked(e *entry[T]) {
	q.unstarted.remove(e)
	q.vacateLocked(e)
	q.late.remove(e)
	e.gone = true
	q.expired++
	q.tellLocked(&UnrunError[T]{Item: e.item, Err: ErrExpired})
}

// comeAgain returns after how long a call may fare better that was refused, 0 if it will not.
func comeAgain(err error) time.Duration {
	if later, ok := errors.AsType[interface {
		error
		WouldWait() time.Duration
	}](err); ok {
		return later.WouldWait()
	}
	return 0
}

// keep keeps what takes the call of a job back.
func (q *Queue[T]) keep(e *entry[T], cancel func() bool) {
	q.mu.Lock()
	if e.gone {
		q.mu.Unlock()
		cancel()
		return
	}
	if !e.begun {
		q.calls[e] = cancel
	}
	q.mu.Unlock()
}

// withdraw takes jobs out that have not started, and their calls. They count as handed back.
func (q *Queue[T]) withdraw(which func(T) bool) []T {
	q.mu.Lock()
	entries := q.takeLocked(which)
	var cancels []func() bool
	for _, e := range entries {
		if cancel := q.calls[e]; cancel != nil {
			cancels = append(cancels, cancel)
			delete(q.calls, e)
		}
	}
	q.mu.Unlock()
	for _, cancel := range cancels {
		cancel()
	}
	return items(entries)
}
