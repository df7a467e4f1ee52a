package scheduler

import (
	"fmt"
	"time"
)

// TokenBucket holds up to burst tokens and gets a new one every T; a unit takes one
// token. It starts full.
//
// It is the same rule as a strict [GCRA] and a [LeakyBucket], in the ledger form: a
// balance, and when it was last touched. The three agree on every decision.
//
// Use it for a partner that states one: "100 per second with bursts of 20". To be
// gentle, prefer a [GCRA] with burst 1. A cost above the burst can never leave.
//
// Worst burst: burst units at once, and burst + floor(w/T) in a closed window of
// length w. Memory: one balance and one instant per key. Its Next is exact for any
// ahead, whatever costs those units come in.
//
// TokenBucket is not safe for concurrent use.
type TokenBucket struct {
	rate     Rate
	burst    int64
	emission emission

	balance amount // at touched
	touched time.Time

	unsettled *unsettled // in units, of which the fractions are in the period; nil: none
}

// NewTokenBucket returns a full bucket. It refuses an invalid rate, a burst below 1 or
// above 2^60, and one that takes longer than 292 years to fill.
func NewTokenBucket(r Rate, burst int64) (*TokenBucket, error) {
	if burst < 1 || burst > maxBucket {
		return nil, fmt.Errorf("scheduler: burst %d: must be from 1 to 2^60", burst)
	}
	if err := checkRate(r, burst); err != nil {
		return nil, err
	}
	return &TokenBucket{rate: r, burst: burst, emission: newEmission(r), balance: whole(burst)}, nil
}

// Rate returns the rate at which tokens come.
func (b *TokenBucket) Rate() Rate { return b.rate }

// MaxCost returns the burst.
func (b *TokenBucket) MaxCost() int64 { return b.burst }

// Next implements [Scheduler].
func (b *TokenBucket) Next(t time.Time, ahead, n int64) time.Time {
	mustBeMade(b.burst > 0, "TokenBucket")
	t = later(t, b.touched)
	if n > b.burst {
		return t.Add(never)
	}
	if b.rate.unlimited {
		return t
	}
	// Units ahead leave as soon as there is a token for them, so no token is lost
	// to a full bucket until they have all left.
	wanted := whole(saturatingSum(max(ahead, 0), max(n, 1)))
	return t.Add(b.emission.timeFor(b.emission.difference(wanted, b.at(t))))
}

// Commit implements [Scheduler]. It counts at left.
func (b *TokenBucket) Commit(due, left time.Time, n int64) {
	mustBeMade(b.burst > 0, "TokenBucket")
	left = later(left, b.touched)
	if !b.rate.unlimited {
		b.departs(left)
		b.balance = b.emission.difference(b.at(left), whole(max(n, 0)))
	}
	b.touched = left
}

// SetRate changes the rate as of now; see [GCRA.SetRate]. The balance is kept.
func (b *TokenBucket) SetRate(now time.Time, r Rate) error {
	mustBeMade(b.burst > 0, "TokenBucket")
	if err := checkRate(r, b.burst); err != nil {
		return err
	}
	now = later(now, b.touched)
	to := newEmission(r)
	if b.rate.unlimited || r.unlimited {
		b.balance = whole(b.burst)
	} else {
		b.departs(now)
		b.balance = b.emission.resize(b.at(now), to)
	}
	b.unsettled = b.unsettled.at(b.emission, to)
	b.rate, b.emission, b.touched = r, to, now
	return nil
}

// Forfeit gives up saved tokens; see [GCRA.Forfeit].
func (b *TokenBucket) Forfeit(t time.Time, keep int64) {
	mustBeMade(b.burst > 0, "TokenBucket")
	if b.rate.unlimited {
		return
	}
	t = later(t, b.touched)
	kept := whole(min(max(keep, 1), b.burst))
	debt := b.emission.difference(kept, b.plainly(t))
	b.unsettled.then(debt)
	if debt.units < 0 {
		b.balance, b.touched = kept, t
	}
}

// Forfeited returns the bucket as it would be after Forfeit; see [GCRA.Forfeited].
func (b *TokenBucket) Forfeited(t time.Time, keep int64) Scheduler {
	other := *b
	other.unsettled = nil
	other.Forfeit(t, keep)
	return &other
}

// at returns the balance at t, which is not before touched. It may exceed the burst
// by what comes in less than a nanosecond: an instant stands for the nanosecond that
// ends with it, and the due time of the next unit was rounded up into it.
func (b *TokenBucket) at(t time.Time) amount {
	elapsed := t.Sub(b.touched)
	// Idle time is clamped before it is multiplied.
	if elapsed > b.emission.timeFor(b.emission.difference(whole(b.burst), b.balance)) {
		return whole(b.burst)
	}
	return b.emission.sum(b.balance, b.emission.drops(elapsed))
}

// plainly returns the balance at t if the bucket had no bounds.
func (b *TokenBucket) plainly(t time.Time) amount {
	return b.emission.sum(b.balance, b.emission.drops(t.Sub(b.touched)))
}
