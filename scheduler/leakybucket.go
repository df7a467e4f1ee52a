package scheduler

import (
	"fmt"
	"time"
)

// LeakyBucket is the leaky bucket as a meter (ITU-T I.371, ATM Forum Traffic
// Management 4.1): a unit pours one unit into the bucket, which holds up to capacity
// and leaks one every T; what would overflow does not conform. It starts empty.
//
// It is the same rule as a [TokenBucket], seen from the other side, in the ledger
// form: a level, and when it was last touched. The leaky bucket as a queue, which
// lets one unit leave every T, is a [GCRA] with burst 1 in front of a line.
//
// Use it for a partner that states one, as Shopify does ("40 in the bucket, 2 leak
// per second"). A cost above the capacity can never leave.
//
// Worst burst: capacity units at once, and capacity + floor(w/T) in a closed window
// of length w. Memory: one level and one instant per key. Its Next is exact for any
// ahead, whatever costs those units come in.
//
// LeakyBucket is not safe for concurrent use.
type LeakyBucket struct {
	rate     Rate
	capacity int64
	emission emission

	// level is what is in the bucket one nanosecond before touched, if it leaks
	// from then on: an instant stands for the nanosecond that ends with it, and the
	// due time of the next unit was rounded up into it.
	level   amount
	touched time.Time

	unsettled *unsettled // in units, of which the fractions are in the period; nil: none
}

// NewLeakyBucket returns an empty bucket. It refuses an invalid rate, a capacity below 1
// or above 2^60, and one that takes longer than 292 years to leak.
func NewLeakyBucket(r Rate, capacity int64) (*LeakyBucket, error) {
	if capacity < 1 || capacity > maxBucket {
		return nil, fmt.Errorf("scheduler: capacity %d: must be from 1 to 2^60", capacity)
	}
	if err := checkRate(r, capacity); err != nil {
		return nil, err
	}
	return &LeakyBucket{rate: r, capacity: capacity, emission: newEmission(r)}, nil
}

// Rate returns the rate at which the bucket leaks.
func (b *LeakyBucket) Rate() Rate { return b.rate }

// MaxCost returns the capacity.
func (b *LeakyBucket) MaxCost() int64 { return b.capacity }

// Next implements [Scheduler].
func (b *LeakyBucket) Next(t time.Time, ahead, n int64) time.Time {
	mustBeMade(b.capacity > 0, "LeakyBucket")
	t = later(t, b.touched)
	if n > b.capacity {
		return t.Add(never)
	}
	if b.rate.unlimited {
		return t
	}
	poured := whole(saturatingSum(max(ahead, 0), max(n, 1)))
	excess := b.emission.difference(b.emission.sum(b.at(t), poured), whole(b.capacity))
	return t.Add(b.emission.timeFor(b.emission.difference(excess, b.emission.drops(1))))
}

// Commit implements [Scheduler]. It counts at left.
func (b *LeakyBucket) Commit(due, left time.Time, n int64) {
	mustBeMade(b.capacity > 0, "LeakyBucket")
	left = later(left, b.touched)
	if !b.rate.unlimited {
		b.departs(left)
		b.level = b.emission.sum(b.at(left), whole(max(n, 0)))
	}
	b.touched = left
}

// SetRate changes the rate as of now; see [GCRA.SetRate]. The level is kept.
func (b *LeakyBucket) SetRate(now time.Time, r Rate) error {
	mustBeMade(b.capacity > 0, "LeakyBucket")
	if err := checkRate(r, b.capacity); err != nil {
		return err
	}
	now = later(now, b.touched)
	to := newEmission(r)
	if b.rate.unlimited || r.unlimited {
		b.level = amount{}
	} else {
		b.departs(now)
		// Rounded up: what is missing in the bucket is rounded down.
		missing := b.emission.difference(b.emission.drops(1), b.at(now))
		b.level = to.difference(to.drops(1), b.emission.resize(missing, to))
	}
	b.unsettled = b.unsettled.at(b.emission, to)
	b.rate, b.emission, b.touched = r, to, now
	return nil
}

// Forfeit fills what has leaked; see [GCRA.Forfeit].
func (b *LeakyBucket) Forfeit(t time.Time, keep int64) {
	mustBeMade(b.capacity > 0, "LeakyBucket")
	if b.rate.unlimited {
		return
	}
	t = later(t, b.touched)
	filled := b.emission.sum(whole(b.capacity-min(max(keep, 1), b.capacity)), b.emission.drops(1))
	debt := b.emission.difference(b.plainly(t), filled)
	b.unsettled.then(debt)
	if debt.units < 0 {
		b.level, b.touched = filled, t
	}
}

// Forfeited returns the bucket as it would be after Forfeit; see [GCRA.Forfeited].
func (b *LeakyBucket) Forfeited(t time.Time, keep int64) Scheduler {
	other := *b
	other.unsettled = nil
	other.Forfeit(t, keep)
	return &other
}

// at returns the level at t, which is not before touched.
func (b *LeakyBucket) at(t time.Time) amount {
	elapsed := t.Sub(b.touched)
	// Idle time is clamped before it is multiplied.
	if elapsed >= b.emission.timeFor(b.level) {
		return b.emission.drops(1) // empty at t
	}
	return b.emission.difference(b.level, b.emission.drops(elapsed))
}

// plainly returns the level at t if the bucket were never empty.
func (b *LeakyBucket) plainly(t time.Time) amount {
	return b.emission.difference(b.level, b.emission.drops(t.Sub(b.touched)))
}
