package queue

import (
	"container/heap"
	"time"

	"github.com/benbjohnson/clock"
)

// delayed has the jobs that are to come to the line, or come again, at an instant, by that.
type delayed[T any] []delay[T]

type delay[T any] struct {
	at    time.Duration
	seq   int64 // of those of one instant the first goes first
	entry *entry[T]
}

func (d delayed[T]) Len() int { return len(d) }
func (d delayed[T]) Less(i, j int) bool {
	return d[i].at < d[j].at || d[i].at == d[j].at && d[i].seq < d[j].seq
}
func (d delayed[T]) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *delayed[T]) Push(x any)   { *d = append(*d, x.(delay[T])) }

func (d *delayed[T]) Pop() any {
	last := len(*d) - 1
	x := (*d)[last]
	(*d)[last] = delay[T]{}
	if *d = (*d)[:last]; last == 0 {
		*d = nil // a backlog of yesterday costs no memory today
	}
	return x
}

// dropGone takes out what was handed back.
func (d *delayed[T]) dropGone() {
	var rest delayed[T]
	for _, x := range *d {
		if !x.entry.gone {
			rest = append(rest, x)
		}
	}
	heap.Init(&rest)
	*d = rest
}

// delayLocked has a job come to the line at an instant.
func (q *Queue[T]) delayLocked(e *entry[T], at time.Duration) {
	if at >= e.notAfter {
		q.expireLocked(e)
		return
	}
	q.postponed++
	heap.Push(&q.delayed, delay[T]{at, q.postponed, e})
	q.armLocked()
}

var realTime = clock.New()

// An alarm is the timer for what is to come to the line. One that fires for nothing, because it
// was stopped too late, does no harm.
type alarm struct {
	timer *clock.Timer // nil: not set
	at    time.Duration
}

func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
}

// armLocked sets the alarm for the next instant that there is something to do, if it would fire
// later.
func (q *Queue[T]) armLocked() {
	at := never
	if len(q.delayed) > 0 {
		at = q.delayed[0].at
	}
	if q.late.of != nil {
		at = min(at, q.late.retryAt)
	}
	if at == never || q.state == closed || q.alarm.timer != nil && q.alarm.at <= at {
		return
	}
	q.alarm.stop()
	q.alarm.at = at
	clock, wait := q.clock, at-q.now()
	if wait <= 0 {
		clock = realTime // one that is set by hand would first have to move
	}
	q.alarm.timer = clock.AfterFunc(max(wait, 0), q.wake)
}

// wake has the jobs come to the line whose time has come, in its order, and tries the late ones.
func (q *Queue[T]) wake() {
	for {
		q.mu.Lock()
		e := q.dueLocked()
		if e == nil {
			break
		}
		behind := q.late.add(e, false)
		q.mu.Unlock()
		if !behind {
			_ = q.join(e, false)
		}
	}
	var keys []string
	if now := q.now(); q.late.of != nil && q.late.retryAt <= now {
		q.late.retryAt = after(now, retryAfter)
		keys = q.late.keys()
	}
	q.alarm.stop()
	q.armLocked()
	q.mu.Unlock()
	for _, key := range keys {
		q.retry(key)
	}
}

// dueLocked takes the next job out whose time has come, nil if there is none.
func (q *Queue[T]) dueLocked() *entry[T] {
	if q.state == closed || len(q.delayed) == 0 || q.delayed[0].at > q.now() {
		return nil
	}
	return heap.Pop(&q.delayed).(delay[T]).entry
}
