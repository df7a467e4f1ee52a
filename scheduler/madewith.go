package scheduler

import (
	"fmt"
	"time"
)

// A loaded state brings the numbers that its schedule was made with. A saver that wants
// those of the schedule instead sets what can be set, and has MadeWith tell the rest.

// Resize changes the burst as of now. Units that are owed stay owed. On an error nothing has
// changed.
func (b *TokenBucket) Resize(now time.Time, burst int64) error {
	mustBeMade(b.burst > 0, "TokenBucket")
	if _, err := NewTokenBucket(b.rate, burst); err != nil {
		return err
	}
	now = later(now, b.touched)
	b.departs(now)
	b.balance = b.emission.sum(b.at(now), whole(burst-b.burst))
	b.burst, b.touched = burst, now
	return nil
}

// Resize changes the capacity. What is in the bucket stays there. On an error nothing has
// changed.
func (b *LeakyBucket) Resize(_ time.Time, capacity int64) error {
	mustBeMade(b.capacity > 0, "LeakyBucket")
	if _, err := NewLeakyBucket(b.rate, capacity); err != nil {
		return err
	}
	b.capacity = capacity
	return nil
}

// MadeWith tells what the windows are, which nothing can change.
func (f *FixedWindow) MadeWith() string {
	if f.zone == nil {
		return fmt.Sprintf("windows of %v", f.length)
	}
	return fmt.Sprintf("windows of %v in %v, day start %v", f.length, f.zone, f.dayStart)
}

// MadeWith tells the length of the window, which nothing can change.
func (l *SlidingLog) MadeWith() string { return fmt.Sprintf("a window of %v", l.window) }

// MadeWith tells the length of the window, which nothing can change.
func (c *SlidingCounter) MadeWith() string { return fmt.Sprintf("a window of %v", c.window) }

// MadeWith tells the hours, which nothing can change.
func (h *Hours) MadeWith() string {
	return fmt.Sprintf("hours from %v to %v in %v", h.from, h.to, h.zone)
}
