package queue

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// A Source is where [Drain] takes its messages from: a broker, a table, a file.
//
// Next blocks until there is a message and returns the job that handles it,
// acknowledgement included. io.EOF, not wrapped, says that there will be no more; every
// other error stops the drain. With an error there is no job: one that comes with it does
// not run, and is a fault that stops the drain. Next must return soon after ctx ends, and
// it should then put back what it was about to take. Drain never calls the methods of a
// Source concurrently, so a Source need not be safe for it.
//
// Drain obtains the slot before it calls Next, and a slot does not keep: if Next takes
// longer than 5 ms, Drain obtains a second slot with the message in hand. A Source whose
// every Next crosses a network would thus run at half the pace. It should fetch ahead, so
// that Next returns at once from memory, or be a [ReadySource].
type Source interface {
	Next(ctx context.Context) (Job, error)
}

// A ReadySource can tell that a message is there without taking it. Drain then calls
// Ready, waits for the slot, and calls Next, so that no slot is obtained for an empty
// source and the pace is exact also after idle times.
//
// Ready blocks until the next call of Next will probably return at once. Its errors are
// treated like those of Next.
type ReadySource interface {
	Source
	Ready(ctx context.Context) error
}

// freshness is how old a slot may be when its job starts. It is the lateness that package
// shaper tolerates by default.
const freshness = 5 * time.Millisecond

// Drain takes messages from src and runs their jobs at the pace of w, until src returns
// io.EOF, ctx ends, or src or w fails. It obtains the slot first and takes the message
// then, so that no message is held, and no visibility timeout of the broker runs, while
// it would only wait. It suits work that lives elsewhere; for jobs that this process
// makes, use a [Queue].
//
// One worker at a time stands at the source, so jobs start in the order in which src gave
// them out. Failures of jobs go to the error handler (see [WithErrorHandler]) and do not
// stop the drain; a job's ctx is the ctx of Drain. [WithCapacity] is refused, as Drain
// has no line.
//
// Drain returns after its last job has ended: nil after io.EOF, the plain error of ctx,
// or the wrapped error of the Source or Waiter, whichever stopped it first. A message
// that was taken but must not start any more, because ctx or w ended while it waited for
// a fresh slot, is reported to the error handler as an [*UnrunError].
func Drain(ctx context.Context, src Source, w Waiter, opts ...Option) error {
	c, err := newConfig(opts)
	switch {
	case err != nil:
		return err
	case ctx == nil:
		return errNilContext
	case src == nil:
		return errNilSource
	case w == nil:
		return errNilWaiter
	case c.capacitySet:
		return errCapacity
	}

	d := &drain{config: c, source: src, waiter: w, jobs: ctx, stand: make(chan struct{}, 1)}
	d.taking, d.stop = context.WithCancelCause(ctx)
	defer d.stop(nil)
	for range c.workers {
		d.group.Go(d.work)
	}
	d.group.Wait()

	// Workers leave only when taking has ended: by a verdict, or because ctx has ended.
	if v, ok := context.Cause(d.taking).(*verdict); ok {
		return v.err
	}
	return ctx.Err()
}

type drain struct {
	config
	source Source
	waiter Waiter

	jobs   context.Context         // what running jobs see: the caller's
	taking context.Context         // its child; no message is taken after it ends
	stop   context.CancelCauseFunc // ends taking; only the first cause counts
	group  sync.WaitGroup          // the workers

	// stand is full while a worker stands at the source, in Ready, Wait and Next. It is a
	// channel, so that workers that queue up for it leave when the context ends.
	stand chan struct{}
}

// verdict is the cause with which the drain itself ends taking. A nil err means that the
// source is exhausted.
type verdict struct{ err error }

func (v *verdict) Error() string { return fmt.Sprintf("queue: drain stopped: %v", v.err) }

// work is the life of one worker. One that is ended by Goexit replaces itself; it is
// still counted while it does, so Drain cannot miss its heir.
func (d *drain) work() {
	gone := true
	defer func() {
		if gone {
			d.group.Go(d.work)
		}
	}()
	for d.serve() {
	}
	gone = false
}

// serve takes one message and runs it, and reports whether there may be another.
func (d *drain) serve() bool {
	var slot slot
	defer slot.release()
	job := d.fetch(&slot)
	if job == nil {
		return false
	}
	contain(func() error { return job(d.jobs) }, func(err error) {
		if err != nil {
			d.report(err)
		}
	})
	return true
}

// fetch stands at the source until it has a message that may start now. It returns nil
// when the drain has stopped.
func (d *drain) fetch(slot *slot) (job Job) {
	select {
	case d.stand <- struct{}{}:
		defer func() { <-d.stand }()
	case <-d.taking.Done():
		return nil
	}
	// Both may have been ready, and a stopped drain takes nothing.
	if d.taking.Err() != nil {
		return nil
	}
	contain(func() error { return d.take(&job, slot) }, func(err error) {
		if err == nil {
			return
		}
		if err == io.EOF {
			d.stop(&verdict{})
		} else {
			d.stop(&verdict{err})
		}
		if unrun := job; unrun != nil {
			job = nil
			d.report(&UnrunError{Job: unrun, Err: err})
		}
	})
	return job
}

// take obtains a slot and stores the message for it in job. If it fails although a
// message was taken, the message is in job all the same.
func (d *drain) take(job *Job, slot *slot) (err error) {
	if r, ok := d.source.(ReadySource); ok {
		if err := r.Ready(d.taking); err != nil {
			return d.sourceError(err)
		}
	}
	if err := slot.obtain(d.taking, d.waiter); err != nil {
		return err
	}
	asked := time.Now()
	if *job, err = d.source.Next(d.taking); err != nil {
		if *job != nil {
			return fmt.Errorf("queue: source: a job together with an error: %w", err)
		}
		return d.sourceError(err)
	}
	if *job == nil {
		return errNoMessage
	}
	// On a stale slot this job would start late, and the next one, on a fresh slot, too
	// close behind it.
	if time.Since(asked) > freshness {
		if err := slot.obtain(d.taking, d.waiter); err != nil {
			return err
		}
	}
	return d.taking.Err()
}

func (d *drain) sourceError(err error) error {
	switch {
	case err == io.EOF:
		// Only the bare value is the agreed sign. Wrapped it tells of a connection that
		// broke.
		return err
	case d.taking.Err() != nil:
		return d.taking.Err()
	}
	return fmt.Errorf("queue: source: %w", err)
}
