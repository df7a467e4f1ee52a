package scheduler

import (
	"slices"
	"time"
)

// TakeOver makes g owe at now what another schedule owes, whose state was loaded, say.
// Units that are owed stay owed, as with [GCRA.SetRate]; the rate, the burst and the
// tolerance are those of g. The other is unchanged; what is unsettled of either is final. On
// an error nothing has changed.
func (g *GCRA) TakeOver(now time.Time, from *GCRA) error {
	mustBeMade(g.pace != nil, "GCRA")
	n := *from
	n.unsettled = nil
	n.pace = &pace{n.rate, g.burst, g.tolerance, n.emission}
	if now.Before(n.seen) {
		n.seen = now // from a clock that has been set back; TAT is waited for as it is
	}
	if n.rate != g.rate {
		if err := n.SetRate(now, g.rate); err != nil {
			return err
		}
	}
	*g = n
	return nil
}

// Shift moves the state in time, for one that was saved on a clock which differs by that
// much. A window that follows the calendar has no such method: its state is about a day,
// say, whatever a clock shows.
func (g *GCRA) Shift(by time.Duration) { g.tat, g.seen = shifted(g.tat, by), shifted(g.seen, by) }

// Shift moves the state in time; see [GCRA.Shift].
func (b *TokenBucket) Shift(by time.Duration) { b.touched = shifted(b.touched, by) }

// Shift moves the state in time; see [GCRA.Shift].
func (b *LeakyBucket) Shift(by time.Duration) { b.touched = shifted(b.touched, by) }

// Shift moves the state in time; see [GCRA.Shift].
func (l *SlidingLog) Shift(by time.Duration) {
	l.epoch, l.seen = shifted(l.epoch, by), shifted(l.seen, by)
}

// Limits returns the limits that are kept at once. What concerns each of them alone, such
// as to load its state into numbers that have changed, is done to each.
func (a all) Limits() []Scheduler { return slices.Clone(a) }

// shifted moves an instant, but for the one that stands for none.
func shifted(t time.Time, by time.Duration) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(by)
}
