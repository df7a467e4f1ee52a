package redis

import (
	"sync"
	"time"
)

// State says whether Redis can be asked.
type State struct {
	Up  bool
	Err *UnavailableError // why it is away; nil if Up
}

// A breaker remembers whether the store answers, so that one call waits for it in vain and not
// all do. At first nothing is known: it is looked for, and not asked for units before it has
// answered.
type breaker struct {
	telling sync.Mutex // held while a change is told, so that all hear them in order

	mu sync.Mutex
	// Guarded by mu:
	up       bool
	seen     bool              // it has answered once
	err      *UnavailableError // why it is away
	probeAt  time.Time
	probing  bool
	watchers map[*pump]struct{} // those that a change matters to
}

// standing is how things are with the store.
type standing struct {
	up   bool
	seen bool
	err  *UnavailableError // nil if it is up, and as long as nothing is known
}

func (l *link) standing() standing {
	l.mu.Lock()
	defer l.mu.Unlock()
	return standing{l.up, l.seen, l.err}
}

// answered is told what has come of a step: nil if the store has answered.
func (l *link) answered(err error) {
	if err == nil && l.standing().up {
		return
	}
	l.telling.Lock()
	defer l.telling.Unlock()
	state, watchers, tell := l.note(err)
	if tell && l.onState != nil {
		l.onState(state)
	}
	for _, p := range watchers {
		p.storeChanged()
	}
}

// note returns what is to be told of a change, and to whom. That the store answers for the first
// time is no change for users.
func (l *link) note(err error) (s State, watchers []*pump, tell bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.probing = false
	was := l.up
	if err == nil {
		tell = l.err != nil
		l.up, l.seen, l.err = true, true, nil
	} else if l.err == nil {
		tell = true
		l.up, l.err = false, l.site.unavailable(err)
		l.probeAt = time.Now().Add(probeEvery)
	}
	if tell || l.up != was {
		for p := range l.watchers {
			watchers = append(watchers, p)
		}
	}
	return State{Up: l.up, Err: l.err}, watchers, tell
}

// mayProbe reports whether the asker shall look for the store. It says afterwards what came of it.
func (l *link) mayProbe() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.up || l.probing || time.Now().Before(l.probeAt) {
		return false
	}
	l.probing = true
	// Counted from its beginning: one that hangs was long enough.
	l.probeAt = time.Now().Add(probeEvery)
	return true
}

// watch has a pump be told of changes, or no more.
func (l *link) watch(p *pump, on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !on {
		delete(l.watchers, p)
		return
	}
	if l.watchers == nil {
		l.watchers = map[*pump]struct{}{}
	}
	l.watchers[p] = struct{}{}
}
