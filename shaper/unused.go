package shaper

import (
	"math"
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
	told  int64         // the most that was told
}

// unusedLocked counts until now. It is called before anything changes that matters to it.
func (l *line) unusedLocked(now time.Time) {
	from := l.unused.until
	l.unused.until = now
	if l.pacing == nil || l.head != nil || !l.gate.open(now) {
		return
	}
	from = later(later(from, l.gate.openAt), l.pacing.TAT())
	if now.After(from) {
		l.unused.time += now.Sub(from)
	}
}

// unusedWordLocked counts what passed unused between the calls that left without the lock,
// while TAT moved on from before. Their units are all those of the fast path till now.
func (l *line) unusedWordLocked(before time.Time, units int64) {
	after := l.pacing.TAT()
	if after.After(before) {
		l.unused.time += after.Sub(later(before, l.unused.until))
	}
	// A call that left just now may be counted only the next time; so this may come to
	// less than nothing, for a moment.
	l.unused.time -= l.pacing.Rate().For(units - l.unused.seen)
	l.unused.seen = units
}

// tell returns the units at the present rate and at those before. It never returns fewer
// than it has before: a call whose units are not counted yet may have made it too many.
func (u *unused) tell(r scheduler.Rate) int64 {
	now, _ := u.split(r)
	u.told = max(u.told, saturatingSum(u.units, now))
	return u.told
}

// split returns the units of the time at the present rate, and what is left of the time in
// parts of a nanosecond, of which the rate has Units in one.
func (u *unused) split(r scheduler.Rate) (units int64, rest uint64) {
	if r.For(1) == 0 || u.time < 0 {
		return 0, 0
	}
	hi, lo := bits.Mul64(uint64(u.time), uint64(r.Units()))
	if hi >= uint64(r.Period()) {
		return math.MaxInt64, 0
	}
	quo, rest := bits.Div64(hi, lo, uint64(r.Period()))
	return int64(min(quo, math.MaxInt64)), rest
}

// turn keeps the total when the rate changes from r to another, in which what there is of
// one more unit takes another time.
func (u *unused) turn(r, to scheduler.Rate) {
	units, rest := u.split(r)
	u.units, u.time = saturatingSum(u.units, units), 0
	if rest > 0 && to.For(1) > 0 {
		hi, lo := bits.Mul64(rest, uint64(to.Period()))
		parts, _ := bits.Div64(hi, lo, uint64(r.Period())) // below to.Period, as rest is below r.Period
		u.time = time.Duration(parts / uint64(to.Units()))
	}
}
