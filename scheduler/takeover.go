package scheduler

import "time"

// TakeOver makes g owe at now what another schedule owes, whose state was loaded, say. All
// instants of the other are moved by shift first. Units that are owed stay owed, as with
// [GCRA.SetRate]; the rate, the burst and the tolerance are those of g. The other is
// unchanged. On an error nothing has changed.
func (g *GCRA) TakeOver(now time.Time, from *GCRA, shift time.Duration) error {
	n := *from
	n.burst, n.tolerance = g.burst, g.tolerance
	if !n.tat.IsZero() {
		n.tat = n.tat.Add(shift)
	}
	if n.seen = n.seen.Add(shift); now.Before(n.seen) {
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
