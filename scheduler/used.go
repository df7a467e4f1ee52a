package scheduler

import (
	"fmt"
	"time"
)

// A UsedSetter is a schedule that counts what a partner counts, too, and can be told that
// count where the partner tells it.
type UsedSetter interface {
	// SetUsed says how many units are in use at now: of a window those that left in it, of a
	// GCRA and of a bucket those that are owed. That is the bucket's level, and its capacity
	// less its tokens. Where that is more than what was counted, the difference is charged, and
	// where it is less it is given back, exactly. What is unsettled stays so, as if the partner
	// had counted what was charged. A count below 0 is an error, as is one of a schedule that
	// can count nothing, and changes nothing.
	SetUsed(now time.Time, used int64) error
}

var (
	_ UsedSetter = (*GCRA)(nil)
	_ UsedSetter = (*TokenBucket)(nil)
	_ UsedSetter = (*LeakyBucket)(nil)
	_ UsedSetter = (*FixedWindow)(nil)
)

func checkUsed(used int64, r Rate) error {
	switch {
	case used < 0:
		return fmt.Errorf("scheduler: %d units in use: must not be negative", used)
	case r.unlimited:
		return fmt.Errorf("scheduler: %d units in use: an unlimited schedule counts none", used)
	}
	return nil
}

// SetUsed implements [UsedSetter].
func (g *GCRA) SetUsed(now time.Time, used int64) error {
	mustBeMade(g.pace != nil, "GCRA")
	if err := checkUsed(used, g.rate); err != nil {
		return err
	}
	now = later(now, g.seen)
	g.seen = now
	g.departs(now)
	g.tat, g.frac = now, 0
	g.advance(g.emission.times(used))
	g.cutTAT(now)
	return nil
}

// SetUsed implements [UsedSetter].
func (b *TokenBucket) SetUsed(now time.Time, used int64) error {
	mustBeMade(b.burst > 0, "TokenBucket")
	if err := checkUsed(used, b.rate); err != nil {
		return err
	}
	now = later(now, b.touched)
	b.departs(now)
	b.balance, b.touched = b.emission.difference(whole(b.burst), whole(used)), now
	return nil
}

// SetUsed implements [UsedSetter].
func (b *LeakyBucket) SetUsed(now time.Time, used int64) error {
	mustBeMade(b.capacity > 0, "LeakyBucket")
	if err := checkUsed(used, b.rate); err != nil {
		return err
	}
	now = later(now, b.touched)
	b.departs(now)
	b.level, b.touched = b.emission.sum(whole(used), b.emission.drops(1)), now
	return nil
}

// SetUsed implements [UsedSetter].
func (f *FixedWindow) SetUsed(now time.Time, used int64) error {
	mustBeMade(f.limit > 0, "FixedWindow")
	if err := checkUsed(used, Rate{}); err != nil {
		return err
	}
	f.reach(later(now, f.seen))
	f.used = used
	return nil
}
