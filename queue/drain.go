package queue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/shaper"
)

// Drain takes messages from src and runs them in the line of the Shaper, each in a slot of its own,
// until src returns io.EOF or an error, ctx ends, or the line is closed. They start in the order
// in which src gave them out.
//
// It takes them ahead of their slots by what it takes to fetch them, as measured, so that the pace
// is kept over any distance, and no sooner, so that none waits here that another consumer could
// have. It has never more in hand, which is taken and not started, than ceil(rate x fetch time) + 1;
// what comes beyond that is returned. A fetch time is the longest of the latest 8 calls of Take,
// but for those that waited for messages: that took more than four times as long as the
// shortest. Under a line whose schedule has no rate, or is [scheduler.Unlimited], it is as many as
// have started during two of them, and one.
//
// A message in hand, and one that runs, is extended after each third of its lease ([Extender]). On
// a hold or a pause of the line, which are noticed within a second, those in hand are given back
// ([Returner]), unless the hold ends before they would be missed.
//
// The end of ctx ends the taking: what is in hand is given back, and what runs goes on, its
// context included (see [WithJobContext]). A message that cannot be given back goes to the error
// handler as an [*UnrunError] of type Message. After io.EOF what is in hand still runs.
//
// Drain returns after its last job has ended: nil after io.EOF, the plain error of ctx, or the
// wrapped error of the source or line, whichever stopped it first. For the options see each of
// them.
func Drain(ctx context.Context, line *shaper.Shaper, src Source, opts ...Option) error {
	c, err := newConfig(opts)
	switch {
	case err != nil:
		return err
	case ctx == nil:
		return errNilContext
	case src == nil:
		return errNilSource
	case c.ofQueue != "":
		return fmt.Errorf("queue: %s: not for Drain", c.ofQueue)
	}
	if c.jobs == nil {
		c.jobs = context.WithoutCancel(ctx)
	}
	d := &drain{
		source: src, line: line, told: c, helds: make(map[*held]struct{}),
		wake: make(chan struct{}, 1), news: make(chan struct{}, 1), over: make(chan struct{}),
	}
	c.capacity = unbounded // what is in hand is bounded by how it is taken
	c.handler = d.heard
	if d.queue, err = newQueue(c.jobs, line, d.run, c); err != nil {
		return err
	}
	d.queue.calls = make(map[*entry[*held]]func() bool)
	d.timebase = d.queue.timebase
	return d.drain(ctx)
}

// A drain is a queue of messages, what feeds it, and what keeps the messages.
type drain struct {
	timebase
	source Source
	line   *shaper.Shaper
	queue  *Queue[*held]
	told   config // whose handler is the user's

	wake chan struct{} // a message has started
	news chan struct{} // messages have come
	over chan struct{} // closed when there is nothing to keep any more

	taking context.Context // ends when no message is taken any more
	ended  atomic.Bool     // the source has said so while it was not asked
	fetch  fetches

	mu     sync.Mutex
	seen   sight
	looked bool
	helds  map[*held]struct{}

	work sync.WaitGroup // calls of messages' methods beside their jobs
}

// errEnough says that the taking has ended otherwise than by the source.
var errEnough = errors.New("queue: taking has ended")

func (d *drain) drain(ctx context.Context) error {
	taking, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(d.queue.accepting, stop)() // the line has failed
	d.taking = taking
	d.watchEnd(stop)
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		d.keep()
	}()

	// A source may call Goexit, so it has a goroutine of its own.
	var err error
	fed := make(chan struct{})
	go contain(d.feed, func(e error) {
		err = e
		close(fed)
	})
	<-fed
	stop()
	d.queue.refuse()
	select {
	case <-d.queue.quiescent:
	case <-ctx.Done():
	}
	unrun := d.queue.Stop()
	cut := len(unrun) > 0 || err == errEnough && !d.ended.Load()
	d.giveAllBack(unrun, ctx)
	unrun, _ = d.queue.Shutdown(context.Background()) // waits for what runs
	d.giveAllBack(unrun, ctx)
	close(d.over)
	<-kept
	d.work.Wait()

	_, panicked := errors.AsType[*PanicError](err)
	switch failure := d.failure(); {
	case panicked:
		return err
	case err != nil && err != io.EOF && err != errEnough:
		return fmt.Errorf("queue: source: %w", err)
	case failure != nil:
		return failure
	case cut:
		return ctx.Err()
	}
	return nil
}

// watchEnd ends the taking when the source says that it has ended.
func (d *drain) watchEnd(stop func()) {
	e, ok := d.source.(Ender)
	if !ok {
		return
	}
	ended := e.Ended()
	d.work.Go(func() {
		select {
		case <-ended:
			d.ended.Store(true)
			stop()
		case <-d.taking.Done():
		}
	})
}

// heard is the error handler of the queue of messages.
func (d *drain) heard(err error) {
	if unrun, ok := err.(*UnrunError[*held]); ok {
		d.giveBack(unrun.Item, unrun.Err)
		return
	}
	if err == d.failure() {
		return // Drain returns it
	}
	d.told.report(err)
}

func (d *drain) failure() error {
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	return d.queue.failure
}

func (d *drain) giveAllBack(messages []*held, ctx context.Context) {
	why := ctx.Err()
	if why == nil {
		why = ErrClosed
	}
	for _, h := range messages {
		d.giveBack(h, why)
	}
}
