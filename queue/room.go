package queue

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// A room is how many jobs may wait. Those that come again are not asked whether they fit: what is
// over is paid by the next ones that leave.
type room struct {
	*semaphore.Weighted
	over int
}

func newRoom(n int) room { return room{Weighted: semaphore.NewWeighted(int64(n))} }

func (r *room) leave() {
	if r.over > 0 {
		r.over--
		return
	}
	r.Release(1)
}

// A roomOfKey is for the jobs of one key. It exists while there are such jobs, or callers that
// wait for room.
type roomOfKey struct {
	*semaphore.Weighted
	users int
}

// enter takes room for an entry, of its key and of all. With a ctx it waits for some.
func (q *Queue[T]) enter(ctx context.Context, e *entry[T]) error {
	of, came := q.useRoomOf(e), e.arrived
	if of != nil {
		if err := q.acquire(ctx, e, of.Weighted); err != nil {
			q.unuseRoomOf(e.key, of)
			return err
		}
	}
	room := &q.room
	if e.delayed {
		room = &q.delays
	}
	numbered := e
	if e.arrived != came {
		numbered = nil // by the wait for room of its key
	}
	err := q.acquire(ctx, numbered, room.Weighted)
	if err != nil && of != nil {
		of.Release(1)
		q.unuseRoomOf(e.key, of)
	}
	return err
}

func (q *Queue[T]) acquire(ctx context.Context, e *entry[T], s *semaphore.Weighted) error {
	switch {
	case q.accepting.Err() != nil:
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.refusalLocked()
	case s.TryAcquire(1):
		return nil
	case ctx == noWait:
		return ErrFull
	}
	q.block(e)
	defer q.unblock()
	wait, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(q.accepting, stop)()
	switch err := s.Acquire(wait, 1); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.refusalLocked()
}

// block counts a caller that waits for room. No two of them come at the same instant: the order
// of their jobs must be known when they get room together. It numbers the entry, if there is one.
func (q *Queue[T]) block(e *entry[T]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.blocked++
	if e != nil && !e.delayed {
		q.latest = max(q.latest, e.arrived) + 1
		e.arrived = q.latest
	}
}

func (q *Queue[T]) unblock() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.blocked--
}

// useRoomOf returns the room of the key of an entry, nil if that is not bounded.
func (q *Queue[T]) useRoomOf(e *entry[T]) *roomOfKey {
	if q.ofKey == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	of := q.ofKey[e.key]
	if of == nil {
		of = &roomOfKey{Weighted: semaphore.NewWeighted(int64(q.capacityPerKey))}
		q.ofKey[e.key] = of
	}
	of.users++
	e.ofKey = true
	return of
}

func (q *Queue[T]) unuseRoomOf(key string, of *roomOfKey) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unuseLocked(key, of)
}

func (q *Queue[T]) unuseLocked(key string, of *roomOfKey) {
	if of.users--; of.users == 0 {
		delete(q.ofKey, key)
	}
}

// reenterLocked takes room for a job that comes again, which has none of its key.
func (q *Queue[T]) reenterLocked(e *entry[T]) {
	if e.delayed = q.delays.TryAcquire(1); !e.delayed && !q.room.TryAcquire(1) {
		q.room.over++
	}
}

// vacateLocked gives back the room of an entry.
func (q *Queue[T]) vacateLocked(e *entry[T]) {
	if e.delayed {
		q.delays.leave()
	} else {
		q.room.leave()
	}
	if e.ofKey {
		of := q.ofKey[e.key]
		of.Release(1)
		q.unuseLocked(e.key, of)
		e.ofKey = false
	}
}
