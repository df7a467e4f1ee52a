package shaper

// Charge records a call of the given cost that has left without asking, because
// something below resent it or another program uses the same limit. It never waits.
// The waiting calls move back by what it cost, as if it had left in its turn; one that
// cannot make its deadline any more is refused with [ErrDeadline].
//
// A cost below 1 is ignored. Charge works after Close, too: what has left has left.
func (s *Shaper) Charge(cost int) { s.own.charge(int64(cost)) }

func (f *flow) charge(cost int64) {
	if cost < 1 {
		return
	}
	l := f.lock()
	defer l.unlock()
	now := l.time.now()
	l.passLocked(now)
	f.claimLocked(now, cost, false)           // a line that had run dry has no claim any more
	if l.gate.open(now) && l.passGate(cost) { // it may be the first behind a gate
		l.lag.end()
		l.reopenedLocked(cost)
	}
	if f.own != nil && f.own.gate.open(now) {
		f.own.passGate(cost)
	}
	l.charge(now, cost)
	if f.own != nil {
		f.own.charge(now, cost)
	}
	l.chargedLocked(f, cost)
	f.countLocked(submitted, 0)
	f.countLocked(departed, cost)
	l.first.dismissLateLocked(now)
	f.changedLocked(now)
}
