package oracle

import (
	"math/big"
	"slices"
)

// Cancel removes a call at t if it waits.
func (l *Line) Cancel(t *big.Rat, c *Call) {
	l.Advance(t)
	if c.Outcome == Waiting {
		l.giveUp(c)
	}
}

// SetInterval changes the rate at t.
func (l *Line) SetInterval(t, interval *big.Rat) {
	l.Advance(t)
	l.pass() // what is due already leaves at the old rate
	// What was saved up behind a gate and forfeited has been saved up again since.
	if l.reopening && !l.paused && l.openAt.Cmp(t) <= 0 && l.evened(l.openAt, 1).Cmp(t) < 0 {
		l.reopening, l.lag = false, new(big.Rat)
	}
	l.GCRA.SetInterval(t, interval)
	l.dismissLate()
	l.pass()
}

// Charge records a call at t that has left without asking.
func (l *Line) Charge(t *big.Rat, cost int64) {
	l.Advance(t)
	l.claim(&Call{Ask: Ask{Cost: cost}})
	l.charge(t, t, cost)
	l.since = latest(l.since, t)
	l.dismissLate()
	l.pass()
}

// Release says that a call is no more in flight.
func (l *Line) Release(t *big.Rat) {
	l.Advance(t)
	wasFull := l.full()
	l.inFlight--
	if wasFull {
		l.freedAt = t
		l.pass()
	}
}

// Pause stops the line at t.
func (l *Line) Pause(t *big.Rat) {
	l.Advance(t)
	l.paused = true
}

// Resume lifts pause and hold at t.
func (l *Line) Resume(t *big.Rat) {
	l.Advance(t)
	if l.paused || l.openAt.Cmp(t) > 0 {
		l.paused, l.openAt, l.reopening = false, t, true
		l.pass()
	}
}

// Hold stops the line from t until the given instant.
func (l *Line) Hold(t, until *big.Rat) {
	l.Advance(t)
	if until.Cmp(latest(t, l.openAt)) > 0 {
		l.openAt, l.reopening = until, true
		l.dismissLate()
	}
}

// dismissLate refuses the calls that cannot leave before their deadlines any more.
func (l *Line) dismissLate() {
	var ahead int64
	for _, c := range slices.Clone(l.waiting) {
		if c.Deadline != nil && l.foresee(c, ahead).Cmp(c.Deadline) >= 0 {
			l.withdraw(c, Refused)
		} else {
			ahead += c.Cost
		}
	}
}
