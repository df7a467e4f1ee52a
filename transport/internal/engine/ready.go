package engine

import (
	"context"
	"time"
)

// A trial is a call whose answer the others wait for. When a hold ends that was shorter than
// what the partner had stated, it is not known whether calls are taken again; so one goes alone.
type trial struct {
	name  string // the key, or the account
	ended chan struct{}
}

// maxTrial bounds for how long the others wait.
const maxTrial = 10 * time.Second

// Ready is asked when the Waiter has let a call leave. It returns nil if it may be sent, as it
// may as a rule. Otherwise it returns what waits for whatever is in the way; the Waiter has to
// be asked again then.
func (e *Engine) Ready(c *Call) (wait func(context.Context) error) {
	c.known = e.memory.known()
	e.take(c)
	e.each(c.Key, func(name string, k *state) bool {
		switch _, held := e.heldLocked(c.Key, k, time.Now(), c.asked); {
		case held && e.Hold != nil:
			// A refusal has come since the Waiter said yes.
			wait = func(ctx context.Context) error { return ctx.Err() }
		case name != account && !e.sendsLocked(k, c):
			wait = func(ctx context.Context) error { return ctx.Err() }
		case k.stop != nil:
			wait = e.await(k.stop)
		case !k.capped || c.trial != nil:
		case k.trial == nil:
			k.trial = &trial{name, make(chan struct{})}
			c.trial = k.trial
		default:
			wait = e.await(k.trial)
		}
		return wait == nil
	})
	if wait != nil {
		e.Ended(c)
	}
	return wait
}

// await returns what waits until a trial has ended.
func (e *Engine) await(other *trial) func(context.Context) error {
	return func(ctx context.Context) error {
		timer := time.NewTimer(maxTrial)
		defer timer.Stop()
		select {
		case <-other.ended:
		case <-timer.C:
			e.end(other) // the next one tries
		case <-ctx.Done():
			return ctx.Err()
		}
		return nil
	}
}

// owes tells a Waiter of a hold that it could not be told of before, and returns why it
// still cannot: a Group that has no room for the key, say.
func (e *Engine) owes(key string) (err error) {
	e.each(key, func(name string, k *state) bool {
		if k.owed && k.hold.After(time.Now()) {
			err = e.tell(name, k.hold)
			k.owed = err != nil
		}
		return err == nil
	})
	return err
}

// Ended is called when the call has its answer, or will get none: if it was a trial, the others
// go on.
func (e *Engine) Ended(c *Call) {
	e.land(c)
	if c.trial != nil {
		e.end(c.trial)
		c.trial = nil
	}
}

func (e *Engine) end(ended *trial) {
	k := e.memory.get(ended.name)
	if k == nil {
		return
	}
	defer k.mu.Unlock()
	if k.trial == ended {
		close(ended.ended)
		k.trial = nil
	}
}

// Stop lets nothing of a key leave until the function that it returns is called. It is for
// a refusal that states no time while its body is awaited: if that says that it is no
// limit, there must be no hold, which could not be taken back.
func (e *Engine) Stop(key string) (goOn func()) {
	if e.Hold == nil {
		return func() {}
	}
	k, _ := e.memory.make(key)
	s := &trial{key, make(chan struct{})}
	k.stop, k.used = s, time.Now()
	k.mu.Unlock()
	return func() {
		close(s.ended)
		if k := e.memory.get(key); k != nil {
			if k.stop == s {
				k.stop = nil
			}
			k.mu.Unlock()
		}
	}
}
