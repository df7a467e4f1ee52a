package scheduler

import "time"

// CommitUnsettled implements [Settler]; see [GCRA.CommitUnsettled]. Where a change of the
// rate rounds the balance, what is known of unsettled departures is rounded, too, by less than
// what comes in a nanosecond.
func (b *TokenBucket) CommitUnsettled(id uint64, due, left time.Time, n int64) {
	b.Commit(due, left, n)
	b.unsettled = b.unsettled.add(max(b.emission.period, 1), id, n)
}

// Settle implements [Settler].
func (b *TokenBucket) Settle(id uint64, actual int64) error {
	mustBeMade(b.burst > 0, "TokenBucket")
	change, err := settleUnits(&b.unsettled, id, actual)
	if err == nil && !b.rate.unlimited {
		b.balance = b.emission.difference(b.balance, change)
		// No more than a full bucket, and what comes in a nanosecond; a count that was set may
		// have left the departure out.
		if more := b.emission.sum(b.emission.difference(whole(b.burst), b.balance), b.emission.drops(1)); more.units < 0 {
			b.balance = whole(b.burst)
		}
	}
	return err
}

// Unsettled implements [Settler].
func (b *TokenBucket) Unsettled() int { return b.unsettled.len() }

// departs tells what is unsettled of a departure, before it is charged.
func (b *TokenBucket) departs(left time.Time) {
	if b.unsettled != nil {
		b.unsettled.then(b.debtAt(left))
	}
}

// debtAt returns how many units are owed at the instant of a departure; see
// [GCRA.CommitUnsettled].
func (b *TokenBucket) debtAt(left time.Time) amount {
	debt := b.emission.difference(whole(b.burst), b.plainly(left))
	if debt.units < 0 && b.at(left) != whole(b.burst) {
		return amount{} // the tokens that came in the nanosecond are not lost
	}
	return debt
}

// CommitUnsettled implements [Settler]; see [TokenBucket.CommitUnsettled].
func (b *LeakyBucket) CommitUnsettled(id uint64, due, left time.Time, n int64) {
	b.Commit(due, left, n)
	b.unsettled = b.unsettled.add(max(b.emission.period, 1), id, n)
}

// Settle implements [Settler].
func (b *LeakyBucket) Settle(id uint64, actual int64) error {
	mustBeMade(b.capacity > 0, "LeakyBucket")
	change, err := settleUnits(&b.unsettled, id, actual)
	if err == nil && !b.rate.unlimited {
		b.level = b.emission.sum(b.level, change)
	}
	return err
}

// Unsettled implements [Settler].
func (b *LeakyBucket) Unsettled() int { return b.unsettled.len() }

// departs tells what is unsettled of a departure, before it is charged.
func (b *LeakyBucket) departs(left time.Time) {
	if b.unsettled != nil {
		b.unsettled.then(b.debtAt(left))
	}
}

// debtAt returns how many units are owed at the instant of a departure; see
// [GCRA.CommitUnsettled].
func (b *LeakyBucket) debtAt(left time.Time) amount {
	empty := b.emission.drops(1)
	debt := b.emission.difference(b.plainly(left), empty)
	if debt.units < 0 && b.at(left) != empty {
		return amount{} // it is not empty yet
	}
	return debt
}

// settleUnits settles a call of a schedule that counts in units, and returns by how much its
// debt changes.
func settleUnits(u **unsettled, id uint64, actual int64) (change amount, err error) {
	if err := checkActual(actual); err != nil {
		return amount{}, err
	}
	i := (*u).find(id)
	if i < 0 {
		return amount{}, ErrFinal
	}
	*u, change = (*u).settle(i, whole(actual-(*u).calls[i].cost))
	return change, nil
}

// at returns what is unsettled of a bucket, counted at another rate. What was owed is not where
// one of the two is unlimited.
func (u *unsettled) at(from, to emission) *unsettled {
	base := max(to.period, 1)
	if from.period == 0 || to.period == 0 {
		return u.swallowed(base)
	}
	return u.in(base, func(a amount) amount { return from.resize(a, to) })
}
