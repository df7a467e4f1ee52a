package scheduler

import (
	"slices"
	"sort"
	"time"
)

// windowCalls are the departures of a window that may still be settled, in the order of their
// ids. A change of one is one of the window that it left in, and of nothing else.
type windowCalls []windowCall

type windowCall struct {
	id   uint64
	cost int64
	left time.Time
}

func (w *windowCalls) add(id uint64, cost int64, left time.Time) {
	*w = append(*w, windowCall{id, max(cost, 0), left})
}

// take takes a call out that is settled, and returns by how much more it has cost.
func (w *windowCalls) take(id uint64, actual int64) (left time.Time, more int64, err error) {
	if err := checkActual(actual); err != nil {
		return left, 0, err
	}
	i := sort.Search(len(*w), func(i int) bool { return (*w)[i].id >= id })
	if i == len(*w) || (*w)[i].id != id {
		return left, 0, ErrFinal
	}
	c := (*w)[i]
	if *w = slices.Delete(*w, i, i+1); len(*w) == 0 {
		*w = nil // and the memory is given back
	}
	return c.left, actual - c.cost, nil
}

// changed returns a count after a change of one of its departures. It is not below 0: a count
// that was set may have left that departure out.
func changed(count, more int64) int64 {
	if more > 0 {
		return saturatingSum(count, more)
	}
	return max(count+more, 0)
}

// CommitUnsettled implements [Settler].
func (f *FixedWindow) CommitUnsettled(id uint64, due, left time.Time, n int64) {
	f.Commit(due, left, n)
	f.unsettled.add(id, n, f.seen)
}

// Settle implements [Settler]. When the window of the departure is over, it makes no
// difference any more.
func (f *FixedWindow) Settle(id uint64, actual int64) error {
	mustBeMade(f.limit > 0, "FixedWindow")
	left, more, err := f.unsettled.take(id, actual)
	if err != nil {
		return err
	}
	// Of an earlier window its end has come before the present one began.
	if _, end := f.bounds(left); end.Equal(f.end) {
		f.used = changed(f.used, more)
	}
	return nil
}

// Unsettled implements [Settler].
func (f *FixedWindow) Unsettled() int { return len(f.unsettled) }

// CommitUnsettled implements [Settler].
func (c *SlidingCounter) CommitUnsettled(id uint64, due, left time.Time, n int64) {
	c.Commit(due, left, n)
	c.unsettled.add(id, n, c.seen)
}

// Settle implements [Settler]. It changes the count of the window that the departure is in, the
// current one or the one before it.
func (c *SlidingCounter) Settle(id uint64, actual int64) error {
	mustBeMade(c.limit > 0, "SlidingCounter")
	left, more, err := c.unsettled.take(id, actual)
	if err != nil {
		return err
	}
	switch start := left.Truncate(c.window); {
	case start.Equal(c.start):
		c.current = changed(c.current, more)
	case c.start.Sub(start) == c.window:
		c.previous = changed(c.previous, more)
	}
	return nil
}

// Unsettled implements [Settler].
func (c *SlidingCounter) Unsettled() int { return len(c.unsettled) }

// CommitUnsettled implements [Settler].
func (l *SlidingLog) CommitUnsettled(id uint64, due, left time.Time, n int64) {
	l.Commit(due, left, n)
	l.unsettled.add(id, n, l.seen)
}

// Settle implements [Settler]. It takes time in proportion to the instants of the window at
// which units left later.
func (l *SlidingLog) Settle(id uint64, actual int64) error {
	mustBeMade(l.limit > 0, "SlidingLog")
	left, more, err := l.unsettled.take(id, actual)
	if err != nil {
		return err
	}
	at := int64(left.Sub(l.epoch))
	rest := l.log[l.gone:]
	i := sort.Search(len(rest), func(i int) bool { return rest[i].at >= at })
	if i == len(rest) || rest[i].at != at {
		if more <= 0 || !left.Add(l.window).After(l.seen) {
			return nil // it has aged out
		}
		// It was charged with nothing, so there is no entry.
		l.log = slices.Insert(l.log, l.gone+i, logEntry{at, 0})
		rest = l.log[l.gone:]
		if l.gone+i > 0 {
			rest[i].total = l.log[l.gone+i-1].total
		}
	}
	for j := range rest[i:] {
		rest[i+j].total = changed(rest[i+j].total, more)
	}
	return nil
}

// Unsettled implements [Settler].
func (l *SlidingLog) Unsettled() int { return len(l.unsettled) }
