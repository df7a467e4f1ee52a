package main

import (
	"container/heap"
	"time"

	"github.com/benbjohnson/clock"
)

// An agenda is a clock that jumps from one thing that is to be done to the next. What is due
// is done on the goroutine of run, so a minute takes no time, and each run is the same.
//
// It is enough of a clock for a Shaper whose calls wait by Enqueue: a goroutine that waits is
// nothing that the agenda would know of.
type agenda struct {
	clock.Clock // nil: nothing else is asked
	start       time.Time
	now         time.Time
	entries     entries
	added       int
}

func newAgenda() *agenda {
	start := time.Unix(0, 0).UTC()
	return &agenda{start: start, now: start}
}

func (a *agenda) Now() time.Time                      { return a.now }
func (a *agenda) Since(t time.Time) time.Duration     { return a.now.Sub(t) }
func (a *agenda) Until(t time.Time) time.Duration     { return t.Sub(a.now) }
func (a *agenda) elapsed() time.Duration              { return a.Since(a.start) }
func (a *agenda) at(elapsed time.Duration, do func()) { a.add(a.start.Add(elapsed), do) }
func (a *agenda) add(when time.Time, do func()) {
	a.added++
	heap.Push(&a.entries, entry{when, a.added, do})
}

// AfterFunc returns a timer that does not fire by itself. It is there to be stopped, and to
// tell whether it was.
func (a *agenda) AfterFunc(d time.Duration, f func()) *clock.Timer {
	const never = 1 << 62
	timer := clock.New().AfterFunc(never, func() {})
	a.add(a.now.Add(max(d, 0)), func() {
		if timer.Stop() {
			f()
		}
	})
	return timer
}

// run does what is due up to the end, and leaves the rest undone.
func (a *agenda) run(end time.Duration) {
	for len(a.entries) > 0 && a.entries[0].when.Sub(a.start) <= end {
		next := heap.Pop(&a.entries).(entry)
		a.now = next.when
		next.do()
	}
	a.now = a.start.Add(end)
}

type entry struct {
	when  time.Time
	order int // among those of one instant
	do    func()
}

// entries are a heap: the first is the one to do next.
type entries []entry

func (e entries) Len() int      { return len(e) }
func (e entries) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e entries) Less(i, j int) bool {
	if c := e[i].when.Compare(e[j].when); c != 0 {
		return c < 0
	}
	return e[i].order < e[j].order
}
func (e *entries) Push(x any) { *e = append(*e, x.(entry)) }
func (e *entries) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}
