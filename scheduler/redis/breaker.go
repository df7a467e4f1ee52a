package redis

import (
	"context"
	"sync"
	"time"
)

// State says whether Redis can be asked.
type State struct {
	Up  bool
	Err *UnavailableError // why it is away; nil if Up
}

// A breaker remembers that the store is away, so that one call waits for it in vain and
// not all do.
type breaker struct {
	telling sync.Mutex // held while onState is told of a change, so that it hears them in order

	mu sync.Mutex
	// Guarded by mu:
	err     *UnavailableError // nil: up
	probeAt time.Time
	probing bool
	down    context.Context // ends when the store goes away; made for calls that wait
	end     context.CancelCauseFunc
}

// failure returns why the store is away, or nil.
func (l *link) failure() *UnavailableError {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// failed is told that the store has given no answer, or none that is one.
func (l *link) failed(err error) {
	l.telling.Lock()
	defer l.telling.Unlock()
	if state, changed := l.note(err); changed && l.onState != nil {
		l.onState(state)
	}
}

// answered is told that the store has answered.
func (l *link) answered() {
	if l.failure() == nil {
		return
	}
	l.telling.Lock()
	defer l.telling.Unlock()
	if state, changed := l.note(nil); changed && l.onState != nil {
		l.onState(state)
	}
}

func (l *link) note(err error) (s State, changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.probing = false
	l.probeAt = time.Now().Add(probeEvery)
	switch {
	case err == nil:
		changed = l.err != nil
		l.err = nil
	case l.err == nil:
		changed = true
		l.err = l.site.unavailable(err)
		if l.end != nil {
			l.end(l.err)
			l.down, l.end = nil, nil
		}
	}
	return State{Up: l.err == nil, Err: l.err}, changed
}

// mayProbe reports whether the caller shall look for the store, which is away. A
// caller that is told so says afterwards what came of it.
func (l *link) mayProbe() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil || l.probing || time.Now().Before(l.probeAt) {
		return false
	}
	l.probing = true
	return true
}

// untilDown returns a context that ends when the store goes away, or why it is away.
func (l *link) untilDown() (context.Context, *UnavailableError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return nil, l.err
	}
	if l.down == nil {
		l.down, l.end = context.WithCancelCause(context.Background())
	}
	return l.down, nil
}
