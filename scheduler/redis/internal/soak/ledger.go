package main

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// A ledger judges when calls left.
type ledger struct {
	mu        sync.Mutex
	processes int
	at        []time.Time
	latest    []time.Time
	spans     []span // in which something happened
	total     int
	excited   int // those that left then
}

type span struct{ from, to time.Time }

func newLedger(processes int) *ledger {
	l := &ledger{processes: processes, latest: make([]time.Time, processes)}
	for i := range l.latest {
		l.latest[i] = time.Now()
	}
	return l
}

func (l *ledger) left(process int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.at = append(l.at, now)
	l.latest[process] = now
}

func (l *ledger) disturbed(from, to time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spans = append(l.spans, span{from, to.Add(calm)})
}

const (
	// late is how late calls may be on a busy machine: a timer, a round trip.
	late = 100 * time.Millisecond
	// silence is how long no process may send nothing: its share, and the time in which
	// all find out that the store has gone or come back.
	silence = 3 * time.Second
	// longest is the longest window that is looked at.
	longest = 5 * time.Second
)

// check judges what has left since the latest check.
func (l *ledger) check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for i, at := range l.latest {
		if now.Sub(at) > silence {
			return fmt.Errorf("process %d is wedged: nothing has left for %v", i, now.Sub(at))
		}
	}
	slices.SortFunc(l.at, time.Time.Compare)
	for _, window := range []time.Duration{100 * time.Millisecond, time.Second, longest} {
		from := 0
		for k := range l.at {
			for l.at[k].Sub(l.at[from]) > window {
				from++
			}
			if n, most := k-from+1, l.bound(l.at[from], l.at[k], window); n > most {
				return fmt.Errorf("%d calls left within %v until %v, more than %d", n, window, l.at[k], most)
			}
		}
	}
	// The latest are looked at again with those that come.
	keep := now.Add(-longest)
	old, _ := slices.BinarySearchFunc(l.at, keep, time.Time.Compare)
	l.total += old
	for _, at := range l.at[:old] {
		if l.events(at, at) > 0 {
			l.excited++
		}
	}
	l.at = slices.Clone(l.at[old:])
	l.spans = slices.DeleteFunc(l.spans, func(s span) bool { return s.to.Before(keep) })
	return nil
}

// events returns how many of them may have had to do with a time.
func (l *ledger) events(from, to time.Time) (n int) {
	for _, s := range l.spans {
		if !s.from.After(to) && !s.to.Before(from) {
			n++
		}
	}
	return n
}

// bound returns how many calls may leave in a window.
func (l *ledger) bound(from, to time.Time, window time.Duration) int {
	units := func(d time.Duration) int { return int(d * perSecond / time.Second) }
	most := 1 + units(window+late)
	if n := l.events(from, to); n > 0 {
		// Some may be cut off and live on their shares, while the others do not know
		// and share all of it; and each loss of the state is a burst, and a run that
		// each has in hand.
		most += units(window+late)*(l.processes-1)/l.processes + l.processes + n*(1+l.processes*units(50*time.Millisecond))
	}
	return most
}

func (l *ledger) totals() (total, excited int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total, l.excited
}
