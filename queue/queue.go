package queue

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/sluice-go/sluice/shaper"
)

// A Queue runs a function for each item that it is handed, at the pace of a Shaper. Make one with
// [New], hand it items with [Queue.Submit], and end it with [Queue.Shutdown], or with
// [Queue.Stop] before that. A job is an item that the Queue has accepted.
//
// Jobs are calls in the line of the Shaper, beside all other calls of that: they leave, which is
// to start, in its order, each in a slot of its own. Without classes, keys and weights that is
// the order in which they came. Jobs whose slots are granted at the same instant begin at the
// same instant, and which of them executes its first statement first is up to the scheduler of
// Go.
//
// The zero Queue accepts nothing and says so.
//
// All methods may be called from any number of goroutines. The function for the items may call
// them too, but it should submit with [Queue.TrySubmit], as Submit could wait for room that only
// the end of this very job would make; and a job that waits for Shutdown waits for itself until
// the ctx of that ends.
type Queue[T any] struct {
	config
	timebase
	handle func(context.Context, T) error
	group  *shaper.Group[string] // the jobs are calls of its keys

	jobs      context.Context // that of running jobs
	endJobs   context.CancelCauseFunc
	accepting context.Context // ends when no item is accepted any more
	refusing  context.CancelFunc
	quiescent chan struct{} // closed when no job will start any more and all have ended

	room   room                  // for jobs that wait
	delays room                  // for delayed ones
	ofKey  map[string]*roomOfKey // by key; nil: no bound

	// mu guards all fields below it, and the entries. It is held for a few assignments: never
	// while the Shaper, the function for the items or an error handler is called.
	mu      sync.Mutex
	state   state
	failure error // the final one of the line
	closing bool  // Close was called: there is no one to hand jobs back to

	unstarted list[T]
	delayed   delayed[T]
	late      late[T]
	alarm     alarm
	untold    untold

	postponed int64         // how often a job was delayed
	latest    time.Duration // arrival of the latest caller that had to wait for room

	// calls has what takes those of waiting jobs out of the line; see withdraw. nil: it is not kept.
	calls map[*entry[T]]func() bool

	alive int // goroutines that live: of running jobs, and the teller's

	submitted, done, failed, expired, returned, running, blocked int64
}

// New returns a queue that runs handle for each item, in the line of the Shaper. It fails if one
// of them is nil, if an option is out of range, or if the Shaper is closed. T says what an item
// is: data that can be stored and printed, or a [Job] with [Run] for handle.
func New[T any](line *shaper.Shaper, handle func(ctx context.Context, item T) error, opts ...Option) (*Queue[T], error) {
	c, err := newConfig(opts)
	switch {
	case err != nil:
		return nil, err
	case c.jobs != nil:
		return nil, errJobContext
	}
	return newQueue(context.Background(), line, handle, c)
}

func newQueue[T any](jobs context.Context, line *shaper.Shaper, handle func(context.Context, T) error, c config) (*Queue[T], error) {
	switch {
	case line == nil:
		return nil, errNilLine
	case handle == nil:
		return nil, errNilHandle
	}
	// The queue bounds what waits by itself.
	bounds := []shaper.Option{shaper.Under(line), shaper.WithMaxInFlightOfAll(c.workers), shaper.WithQueueOfAll(math.MaxInt)}
	if c.perKey != unbounded {
		bounds = append(bounds, shaper.WithMaxInFlight(c.perKey))
	}
	group, err := shaper.NewGroup[string](c.keyRate, append(c.keyOpts[:len(c.keyOpts):len(c.keyOpts)], bounds...)...)
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	q := &Queue[T]{
		config: c, timebase: newTimebase(line.Clock()), handle: handle, group: group,
		room: newRoom(c.capacity), delays: newRoom(c.maxDelayed),
		quiescent: make(chan struct{}),
	}
	if c.capacityPerKey != unbounded {
		q.ofKey = make(map[string]*roomOfKey)
	}
	q.jobs, q.endJobs = context.WithCancelCause(jobs)
	q.accepting, q.refusing = context.WithCancel(context.Background())
	return q, nil
}

// Submit hands the queue an item. While as many jobs wait as may, it blocks; blocked calls get
// room in the order in which they came, and their jobs count from when they came. A nil error
// means that the item was accepted: its job will run, expire, or be handed back, even if ctx ends
// now. ctx governs only the wait for room; the job gets a context of the queue's own.
//
// If Submit returns an error, the item was not accepted and will not run. The error is that of
// ctx if it ended first, [ErrClosed] if the queue takes no more, that of a line that was closed,
// or a [*shaper.Refusal] of a job that could never leave, such as for its cost.
func (q *Queue[T]) Submit(ctx context.Context, item T, opts ...JobOption) error {
	return q.SubmitTo(ctx, "", item, opts...)
}

// SubmitTo is [Queue.Submit] for a job of the key, which is that of a tenant, say, or of a
// partner's host. One key's jobs wait behind those of another only for what they share: the line
// and the workers. A throttled or slow one keeps neither from the others ([WithKeys],
// [WithWorkersPerKey], [WithCapacityPerKey]). Jobs of Submit are of the key "".
func (q *Queue[T]) SubmitTo(ctx context.Context, key string, item T, opts ...JobOption) error {
	if ctx == nil {
		return errNilContext
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return q.submit(ctx, key, item, opts)
}

// TrySubmit is [Queue.Submit] without the wait: if there is no room it returns [ErrFull] at once.
func (q *Queue[T]) TrySubmit(item T, opts ...JobOption) error {
	return q.submit(noWait, "", item, opts)
}

// TrySubmitTo is [Queue.SubmitTo] without the wait.
func (q *Queue[T]) TrySubmitTo(key string, item T, opts ...JobOption) error {
	return q.submit(noWait, key, item, opts)
}

// Keys returns the group of the keys, to hold, pause, charge and limit each of them, or to ask for
// its state. Jobs of Submit are of the key "". Calls that are made of it stand in the same line and
// take places of the same workers. To close it is to close the line for this queue. It is nil for a
// zero Queue.
func (q *Queue[T]) Keys() *shaper.Group[string] { return q.group }

// noWait is no ctx, in which submit waits for nothing.
var noWait context.Context

// submit waits for room until the ctx ends.
func (q *Queue[T]) submit(ctx context.Context, key string, item T, opts []JobOption) error {
	if q.group == nil {
		return errZeroQueue
	}
	if j, ok := any(item).(Job); ok && j == nil {
		return errNilJob
	}
	now := q.now()
	t, err := q.terms(opts, now)
	if err != nil {
		return err
	}
	e := &entry[T]{
		queue: q, item: item, key: key, cost: t.cost, class: t.class,
		arrived: t.notBefore, notAfter: t.notAfter, delayed: t.notBefore > now,
	}
	if err := q.enter(ctx, e); err != nil {
		return err
	}
	return q.accept(e)
}

// accept has an entry be a job, which has room.
func (q *Queue[T]) accept(e *entry[T]) error {
	q.mu.Lock()
	if q.state != open {
		q.vacateLocked(e)
		defer q.mu.Unlock()
		return q.refusalLocked()
	}
	q.submitted++
	q.unstarted.add(e)
	if e.delayed {
		q.delayLocked(e, e.arrived)
		q.mu.Unlock()
		return nil
	}
	if q.late.add(e, false) {
		q.mu.Unlock()
		return nil
	}
	q.mu.Unlock()
	return q.join(e, true)
}

// refusalLocked is what Submit returns once the queue is not open.
func (q *Queue[T]) refusalLocked() error {
	if q.failure != nil {
		return q.failure
	}
	return ErrClosed
}
