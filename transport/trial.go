package transport

import (
	"context"
	"time"
)

// A trial is a request whose answer the others wait for. When a hold ends that was shorter
// than what the partner had stated, it is not known whether requests are taken again; so
// one goes alone.
type trial struct{ ended chan struct{} }

// maxTrial bounds for how long the others wait.
const maxTrial = 10 * time.Second

// ready is asked when the pace has let a request leave. It returns nil if it may be sent,
// as it may as a rule. Otherwise it returns what waits for whatever is in the way; the
// pace has to be asked again then.
func (t *Transport) ready(p *passage) (wait func(context.Context) error) {
	k := t.memory.get(p.key)
	if k == nil {
		return nil
	}
	defer k.mu.Unlock()
	switch {
	case k.until.After(time.Now()) && t.waiter.hold != nil:
		// A refusal has come since the pace said yes. If it says so again, the hold has been
		// lifted by hand.
		if !p.insists {
			p.insists = true
			return func(ctx context.Context) error { return ctx.Err() }
		}
		k.until, k.status, k.capped = time.Time{}, 0, false
		return nil
	case k.stop != nil:
		key, other := p.key, k.stop
		return func(ctx context.Context) error { return t.await(ctx, key, other) }
	case !k.capped:
		return nil
	case k.trial == nil:
		k.trial = &trial{make(chan struct{})}
		p.trial = k.trial
		return nil
	}
	key, other := p.key, k.trial
	return func(ctx context.Context) error { return t.await(ctx, key, other) }
}

// await waits until a trial has ended.
func (t *Transport) await(ctx context.Context, key string, other *trial) error {
	timer := time.NewTimer(maxTrial)
	defer timer.Stop()
	select {
	case <-other.ended:
	case <-timer.C:
		t.endTrial(key, other) // the next one tries
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// owes tells a Waiter of a hold that it could not be told of before, and returns why it
// still cannot: a Group that has no room for the key, say.
func (t *Transport) owes(p *passage) error {
	k := t.memory.get(p.key)
	if k == nil {
		return nil
	}
	defer k.mu.Unlock()
	if !k.owed || !k.until.After(time.Now()) {
		return nil
	}
	err := t.tellHold(p.key, k.until)
	k.owed = err != nil
	return err
}

// endTrial lets the others go on.
func (t *Transport) endTrial(key string, ended *trial) {
	k := t.memory.get(key)
	if k == nil {
		return
	}
	defer k.mu.Unlock()
	if ended != nil && k.trial == ended {
		close(ended.ended)
		k.trial = nil
	}
}

// stop lets nothing of a key leave until the function that it returns is called. It is for
// a refusal that states no time while its body is awaited: if that says that it is no
// limit, there must be no hold, which could not be taken back.
func (t *Transport) stop(key string) (goOn func()) {
	if t.waiter.hold == nil {
		return func() {}
	}
	k, _ := t.memory.make(key)
	s := &trial{make(chan struct{})}
	k.stop, k.used = s, time.Now()
	k.mu.Unlock()
	return func() {
		close(s.ended)
		if k := t.memory.get(key); k != nil {
			if k.stop == s {
				k.stop = nil
			}
			k.mu.Unlock()
		}
	}
}
