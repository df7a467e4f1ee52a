package scheduler

import (
	"fmt"
	"slices"
	"sort"
	"time"
)

// A Ledger bounds what may be settled: no more departures than so many, and each for so long.
// Beyond that the oldest becomes final first, as charged. Like a schedule it is pure and not
// safe for concurrent use.
//
// Of each departure take an id with Open, and give it to CommitUnsettled of the limits:
//
//	id := ledger.Open(now, estimate, limit)
//	limit.CommitUnsettled(id, now, now, estimate)
//	...
//	err := ledger.Settle(later, id, actual)
type Ledger struct {
	most    int
	timeout time.Duration
	open    []openDeparture
	last    uint64
}

type openDeparture struct {
	id     uint64
	cost   int64
	final  time.Time
	limits []Scheduler
}

// NewLedger returns a Ledger for that many departures at a time, each of which is final after
// the timeout. It refuses less than one, and a timeout that is not positive.
func NewLedger(most int, timeout time.Duration) (*Ledger, error) {
	switch {
	case most < 1:
		return nil, fmt.Errorf("scheduler: %d unsettled departures: must be at least 1", most)
	case timeout <= 0:
		return nil, fmt.Errorf("scheduler: unsettled for %v: must be positive", timeout)
	}
	return &Ledger{most: most, timeout: timeout}, nil
}

// Open returns the id of a departure at now that is charged with n units at the limits. Those
// that are a [Settler] keep it until it is settled or final.
func (l *Ledger) Open(now time.Time, n int64, limits ...Scheduler) (id uint64) {
	l.Expire(now)
	if over := len(l.open) + 1 - l.most; over > 0 {
		l.finish(over)
	}
	l.last++
	l.open = append(l.open, openDeparture{l.last, n, now.Add(l.timeout), limits})
	return l.last
}

// Settle settles a departure at all its limits. The errors are those of [Settler].
func (l *Ledger) Settle(now time.Time, id uint64, actual int64) error {
	if err := checkActual(actual); err != nil {
		return err
	}
	l.Expire(now)
	i := sort.Search(len(l.open), func(i int) bool { return l.open[i].id >= id })
	if i == len(l.open) || l.open[i].id != id {
		return ErrFinal
	}
	limits := l.open[i].limits
	l.open = slices.Delete(l.open, i, i+1)
	return settleAll(limits, id, actual)
}

// Expire makes those final whose time is over.
func (l *Ledger) Expire(now time.Time) {
	n := 0
	for n < len(l.open) && !l.open[n].final.After(now) {
		n++
	}
	l.finish(n)
}

// Unsettled returns how many departures may still be settled.
func (l *Ledger) Unsettled() int { return len(l.open) }

// finish makes the n oldest final.
func (l *Ledger) finish(n int) {
	for _, d := range l.open[:n] {
		d.finish()
	}
	l.open = slices.Delete(l.open, 0, n)
}

// finish settles it with what was charged.
func (d *openDeparture) finish() { _ = settleAll(d.limits, d.id, max(d.cost, 0)) }
