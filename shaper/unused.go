package shaper

import (
	"math/bits"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// unused is the time in which units of the rate passed unused while no call waited: the
// bucket was full, the gate open and the line empty. It is a statistic: nothing is decided
// by it.
type unused struct {
	until time.Time     // all is counted until then
	time  time.Duration // at the present rate
	units int64         // of rates before
	seen  int64         // units of the fast path, as of the latest look at it
}

// unusedLocked counts until now. It is called before anything changes that matters to it.
func (s *Shaper) unusedLocked(now time.Time) {
	from := s.unused.until
	s.unused.until = now
	if s.pacing == nil || s.line.head != nil || !s.gate.open(now) {
		return
	}
	from = later(later(from, s.gate.openAt), s.pacing.TAT())
	if now.After(from) {
		s.unused.time += now.Sub(from)
	}
}

// unusedWordLocked counts what passed unused between the calls that left without the lock,
// while TAT moved on from before. Their units are all those of the fast path till now.
func (s *Shaper) unusedWordLocked(before time.Time, units int64) {
	after := s.pacing.TAT()
	if after.After(before) {
		s.unused.time += after.Sub(later(before, s.unused.until))
	}
	// A call that left just now may be counted only the next time; so this may come to
	// less than nothing, for a moment.
	s.unused.time -= s.pacing.Rate().For(units - s.unused.seen)
	s.unused.seen = units
}

// total returns the units at the present rate and at those before.
func (u *unused) total(r scheduler.Rate) int64 {
	if r.For(1) == 0 || u.time < 0 {
		return u.units
	}
	hi, lo := bits.Mul64(uint64(u.time), uint64(r.Units()))
	quo, _ := bits.Div64(hi%uint64(r.Period()), lo, uint64(r.Period()))
	return u.units + int64(quo)
}

// turn keeps the total when the rate changes from r to another.
func (u *unused) turn(r scheduler.Rate) { u.units, u.time = u.total(r), 0 }
