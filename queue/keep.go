package queue

import (
	"context"
	"errors"
	"time"
)

// A held is a message from when it was taken until it is done with.
type held struct {
	message  Message
	extender Extender // nil: it need not be extended
	lease    time.Duration

	// Guarded by the mu of the drain:
	extendAt  time.Duration
	endsAt    time.Duration // of the lease
	extending bool
	err       error // of the latest extension
}

// settleTime bounds the calls that end a message.
const settleTime = 30 * time.Second

// accept has messages wait for their slots. Those that are too many are returned.
func (d *drain) accept(messages []Message) (fault error) {
	if len(messages) == 0 {
		return nil
	}
	has, took := d.queue.Stats(), d.fetch.time()
	room := d.most(has, d.look(), took) - has.Waiting
	for i, m := range messages {
		if m == nil {
			fault = errNoMessage
			continue
		}
		h := d.hold(m)
		if _, ok := m.(Returner); ok && int64(i) >= room {
			d.giveBack(h, nil)
			continue
		}
		if err := d.queue.TrySubmit(h); err != nil {
			d.giveBack(h, err)
		}
	}
	return fault
}

func (d *drain) hold(m Message) *held {
	h := &held{message: m, extendAt: never, endsAt: never}
	if e, ok := m.(Extender); ok {
		if h.lease = e.Lease(); h.lease > 0 {
			h.extender = e
			h.extendedLocked(d.now())
		}
	}
	d.mu.Lock()
	d.helds[h] = struct{}{}
	d.mu.Unlock()
	notify(d.news)
	return h
}

func (h *held) extendedLocked(at time.Duration) {
	h.extendAt, h.endsAt, h.err = after(at, h.lease/3), after(at, h.lease), nil
}

// notify has who waits for the channel look.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// letGo reports whether the message was held until now.
func (d *drain) letGo(h *held) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, was := d.helds[h]
	delete(d.helds, h)
	return was
}

// keep looks after messages until the drain is over.
func (d *drain) keep() {
	for {
		wait := d.tend()
		var due <-chan time.Time
		var stop = func() bool { return false }
		if wait < never {
			t := d.clock.Timer(wait)
			due, stop = t.C, t.Stop
		}
		select {
		case <-due:
		case <-d.news:
		case <-d.over:
			stop()
			return
		}
		stop()
	}
}

// tend does what is due for the messages, and returns how long there is nothing to do.
func (d *drain) tend() time.Duration {
	wait := never
	if d.queue.Stats().Waiting > 0 {
		wait = lookEvery
		if d.look().shut {
			for _, h := range d.queue.withdraw(returnable) {
				d.giveBack(h, nil)
			}
		}
	}
	var lost []*held
	now := d.now()
	d.mu.Lock()
	for h := range d.helds {
		switch {
		case h.extending:
			continue // that ends with the lease
		case h.endsAt <= now:
			lost = append(lost, h)
			continue
		case h.extendAt <= now:
			h.extending = true
			d.work.Go(func() { d.extend(h) })
			continue
		}
		wait = min(wait, h.extendAt-now)
	}
	d.mu.Unlock()
	for _, h := range lost {
		d.lose(h)
	}
	return wait
}

func returnable(h *held) bool {
	_, ok := h.message.(Returner)
	return ok
}

func (d *drain) extend(h *held) {
	began := d.now()
	d.mu.Lock()
	ends := h.endsAt
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.queue.jobs), ends-began)
	defer cancel()
	contain(func() error { return h.extender.Extend(ctx) }, func(err error) {
		d.mu.Lock()
		h.extending = false
		if err == nil {
			h.extendedLocked(began)
		} else {
			h.err, h.extendAt = err, min(after(d.now(), h.lease/3), h.endsAt)
		}
		d.mu.Unlock()
		notify(d.news)
	})
}

// lose is for a message whose lease has run out.
func (d *drain) lose(h *held) {
	if !d.letGo(h) {
		return
	}
	err := &messageError{"Extend", h.err}
	if len(d.queue.withdraw(func(other *held) bool { return other == h })) > 0 {
		d.told.report(&UnrunError[Message]{Item: h.message, Err: err})
		return
	}
	d.told.report(err)
}

// run runs a message that has its slot, and settles what becomes of it.
func (d *drain) run(ctx context.Context, h *held) (err error) {
	notify(d.wake)
	contain(func() error { return h.message.Run(ctx) }, func(e error) {
		err = e
		if _, ok := errors.AsType[*again](e); !ok {
			d.settle(h, e)
		}
	})
	return err
}

func (d *drain) settle(h *held, err error) {
	d.letGo(h)
	dead, isDead := errors.AsType[*dead](err)
	if f, ok := h.message.(Finisher); ok && err == nil {
		d.call("Done", f.Done)
	}
	if b, ok := h.message.(Burier); ok && isDead {
		d.call("Dead", func(ctx context.Context) error { return b.Dead(ctx, dead.err) })
		return
	}
	if r, ok := h.message.(Returner); ok && err != nil {
		d.call("Return", r.Return)
	}
}

// giveBack returns a message, or tells why it is not run.
func (d *drain) giveBack(h *held, why error) {
	d.letGo(h)
	r, ok := h.message.(Returner)
	if !ok {
		d.told.report(&UnrunError[Message]{Item: h.message, Err: why})
		return
	}
	d.work.Go(func() { d.call("Return", r.Return) })
}

// call calls a method of a message that ends it.
func (d *drain) call(name string, method func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.queue.jobs), settleTime)
	defer cancel()
	contain(func() error { return method(ctx) }, func(err error) {
		if err != nil {
			d.told.report(&messageError{name, err})
		}
	})
}
