package queue

import (
	"cmp"
	"slices"
	"time"
)

// late has the jobs that are to be in the line, which has refused them for now: a bound of time
// or of keys, or a store that is away. As a rule there are none. They are tried again when a job
// of their key starts, and now and then; those of one key and class in the order of their arrival.
type late[T any] struct {
	of      map[string][]standing[T] // by key, the most urgent class first; nil if there are none
	retryAt time.Duration
}

// A standing is late jobs of one key and class.
type standing[T any] struct {
	class uint8
	jobs  []*entry[T]
}

// retryAfter is how often late jobs are tried at the least.
const retryAfter = 100 * time.Millisecond

func (l *late[T]) has(key string) bool { return len(l.of[key]) > 0 }

// add puts a job in its place: before others of the same instant if it must, as the line has
// refused it, and behind them otherwise. If there are no late ones of its key and class, it makes
// them only if it must.
func (l *late[T]) add(e *entry[T], must bool) bool {
	if l.of == nil && !must {
		return false
	}
	all := l.of[e.key]
	i, found := slices.BinarySearchFunc(all, e.class, func(s standing[T], class uint8) int { return cmp.Compare(s.class, class) })
	if !found {
		if !must {
			return false
		}
		all = slices.Insert(all, i, standing[T]{class: e.class})
		if l.of == nil {
			l.of = make(map[string][]standing[T])
		}
		l.of[e.key] = all
	}
	e.late, e.refused = true, true
	s := &all[i]
	before := e.arrived
	if !must {
		before = after(before, 1) // it was none of those before
	}
	at, _ := slices.BinarySearchFunc(s.jobs, before, byArrival)
	s.jobs = slices.Insert(s.jobs, at, e)
	return true
}

func byArrival[T any](e *entry[T], arrived time.Duration) int { return cmp.Compare(e.arrived, arrived) }

// next returns the first job of the key that is of the class, or of the most urgent one behind
// that, and is not tried already; nil if there is none.
func (l *late[T]) next(key string, class int) *entry[T] {
	for _, s := range l.of[key] {
		if int(s.class) >= class && s.jobs[0].refused {
			return s.jobs[0]
		}
	}
	return nil
}

// remove takes a job out, if it is there.
func (l *late[T]) remove(e *entry[T]) {
	if !e.late {
		return
	}
	e.late = false
	all := l.of[e.key]
	i := slices.IndexFunc(all, func(s standing[T]) bool { return s.class == e.class })
	s := &all[i]
	if s.jobs[0] == e { // as a rule
		s.jobs[0] = nil
		s.jobs = s.jobs[1:]
	} else {
		at := slices.Index(s.jobs, e)
		s.jobs = slices.Delete(s.jobs, at, at+1)
	}
	if len(s.jobs) == 0 {
		l.tidy(e.key)
	}
}

// tidy keeps no room for what is not there.
func (l *late[T]) tidy(key string) {
	l.of[key] = slices.DeleteFunc(l.of[key], func(s standing[T]) bool { return len(s.jobs) == 0 })
	if len(l.of[key]) == 0 {
		delete(l.of, key)
	}
	if len(l.of) == 0 {
		l.of = nil
	}
}

// dropGone takes out what was handed back.
func (l *late[T]) dropGone() {
	for key, all := range l.of {
		for i := range all {
			all[i].jobs = slices.DeleteFunc(all[i].jobs, func(e *entry[T]) bool {
				e.late = !e.gone
				return e.gone
			})
		}
		l.tidy(key)
	}
}

// keys returns those of late jobs, in the order in which the first of these came.
func (l *late[T]) keys() []string {
	first := make(map[string]time.Duration, len(l.of))
	keys := make([]string, 0, len(l.of))
	for key, all := range l.of {
		first[key] = never
		for _, s := range all {
			first[key] = min(first[key], s.jobs[0].arrived)
		}
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(first[a], first[b]), cmp.Compare(a, b)) })
	return keys
}

// lateLocked is for a job that the line has refused for now.
func (q *Queue[T]) lateLocked(e *entry[T]) {
	if e.late {
		e.refused = true
		return
	}
	if q.late.of == nil {
		q.late.retryAt = after(q.now(), retryAfter)
	}
	q.late.add(e, true)
	q.armLocked()
}

// retry tries the late jobs of a key, those of each class until one is refused. One that is tried
// stays in its place meanwhile: others come behind it.
func (q *Queue[T]) retry(key string) {
	for class := 0; ; {
		q.mu.Lock()
		e := q.late.next(key, class)
		if e == nil {
			q.mu.Unlock()
			return
		}
		e.refused = false
		q.mu.Unlock()
		_ = q.join(e, false)
		q.mu.Lock()
		if e.refused {
			class = int(e.class) + 1
		} else {
			q.late.remove(e)
		}
		q.mu.Unlock()
	}
}
