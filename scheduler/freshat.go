package scheduler

import "time"

// A Forgettable schedule tells when it is as good as new. What keeps one for each of many
// keys may forget it then, and make a fresh one for the next call: no caller can tell.
//
// A type that embeds a schedule of this package and adds state of its own has the method
// by that, and has to answer for its own state, too.
type Forgettable interface {
	// FreshAt returns an instant from which on the schedule answers as a fresh one with
	// the same limits does, if no more units leave. It returns false if it cannot tell
	// one.
	FreshAt() (at time.Time, ok bool)
}

var (
	_ Forgettable = (*GCRA)(nil)
	_ Forgettable = (*TokenBucket)(nil)
	_ Forgettable = (*LeakyBucket)(nil)
	_ Forgettable = (*FixedWindow)(nil)
	_ Forgettable = (*SlidingLog)(nil)
	_ Forgettable = (*SlidingCounter)(nil)
	_ Forgettable = (*Hours)(nil)
	_ Forgettable = all(nil)
)

// FreshAt implements [Forgettable]: once TAT has passed.
func (g *GCRA) FreshAt() (at time.Time, ok bool) {
	mustBeMade(g.pace != nil, "GCRA")
	return g.TAT().Add(1), true // an instant stands for the nanosecond that ends with it
}

// FreshAt implements [Forgettable]: once the bucket is full.
func (b *TokenBucket) FreshAt() (at time.Time, ok bool) {
	mustBeMade(b.burst > 0, "TokenBucket")
	missing := b.emission.difference(whole(b.burst), b.balance)
	return b.touched.Add(b.emission.timeFor(missing)).Add(1), true
}

// FreshAt implements [Forgettable]: once the bucket is empty.
func (b *LeakyBucket) FreshAt() (at time.Time, ok bool) {
	mustBeMade(b.capacity > 0, "LeakyBucket")
	return b.touched.Add(b.emission.timeFor(b.level)), true
}

// FreshAt implements [Forgettable]: when the window of the latest departure has ended.
func (f *FixedWindow) FreshAt() (at time.Time, ok bool) {
	mustBeMade(f.limit > 0, "FixedWindow")
	return f.end, true
}

// FreshAt implements [Forgettable]: a window after the latest departure.
func (l *SlidingLog) FreshAt() (at time.Time, ok bool) {
	mustBeMade(l.limit > 0, "SlidingLog")
	if len(l.log) == 0 {
		return time.Time{}, true
	}
	return l.seen.Add(l.window), true
}

// FreshAt implements [Forgettable]: when the window after that of the latest departure has
// ended.
func (c *SlidingCounter) FreshAt() (at time.Time, ok bool) {
	mustBeMade(c.limit > 0, "SlidingCounter")
	if c.previous == 0 && c.current == 0 {
		return time.Time{}, true
	}
	return c.start.Add(c.window).Add(c.window), true // not twice: that may be too much for a Duration
}

// FreshAt implements [Forgettable]: always, as departures leave no trace.
func (h *Hours) FreshAt() (at time.Time, ok bool) {
	mustBeMade(h.zone != nil, "Hours")
	return h.seen, true
}

// FreshAt implements [Forgettable]: when all limits are as good as new.
func (a all) FreshAt() (at time.Time, ok bool) {
	for _, limit := range a {
		l, ok := limit.(Forgettable)
		if !ok {
			return time.Time{}, false
		}
		fresh, ok := l.FreshAt()
		if !ok {
			return time.Time{}, false
		}
		at = later(at, fresh)
	}
	return at, true
}
