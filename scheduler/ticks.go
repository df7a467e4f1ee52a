package scheduler

import (
	"math"
	"math/bits"
	"time"
)

// Ticks is a [GCRA] at a glance: its decisions in whole numbers, with TAT, its whole
// state, in a single int64 that the caller keeps. So the state fits an atomic word, or
// the value of a map with a million keys.
//
// TAT is counted in ticks since an origin of the caller's choice. A tick is so small a
// part of a nanosecond that the emission interval is a whole number of them; so nothing
// is rounded, and a decision is the one that the GCRA would make. [GCRA.Ticks] makes it;
// [Ticks.Pack] and [Ticks.Unpack] convert TAT.
//
// A Ticks is an immutable value, for the rate and burst of its GCRA at the time.
type Ticks struct {
	emission emission
	perNano  int64 // ticks in a nanosecond
	interval int64 // T
	burst    int64
	early    int64         // (B-1)·T: how far TAT may lie ahead of a unit that leaves
	maxCost  int64         // keeps n·T within limit
	horizon  time.Duration // keeps instants within limit
}

const (
	// limit bounds each of the terms of a decision, so that no sum overflows.
	limit = 1 << 60
	// maxPerNano leaves a horizon of at least 18 minutes.
	maxPerNano = 1 << 20
)

// Ticks returns the schedule in ticks, and false if its numbers are too large for that:
// a burst that takes centuries, or a rate whose fraction has more than 2^20 for a
// denominator.
func (g *GCRA) Ticks() (Ticks, bool) {
	mustBeMade(g.pace != nil, "GCRA")
	p := g.emission
	if p.den > maxPerNano {
		return Ticks{}, false
	}
	k := Ticks{emission: p, perNano: int64(p.den), burst: g.burst, horizon: time.Duration(limit / p.den), maxCost: maxInt64}
	if p.period == 0 {
		return k, true // T is 0: TAT need not be kept
	}
	hi, interval := bits.Mul64(p.period, p.den/p.units)
	if hi > 0 || interval > limit || uint64(g.burst) > limit/interval {
		return Ticks{}, false
	}
	k.interval, k.maxCost = int64(interval), int64(limit/interval)
	k.early = (g.burst - 1) * k.interval
	return k, true
}

// Horizon returns the longest time since the origin for which decisions can be made.
func (k *Ticks) Horizon() time.Duration { return k.horizon }

// Covers reports whether the decision about n units at the given time since the origin
// can be made in ticks: within [0, Horizon], and for at least one unit and not too many.
func (k *Ticks) Covers(since time.Duration, n int64) bool {
	return n >= 1 && n <= k.maxCost && since >= 0 && since <= k.horizon
}

// Leave reports whether n units may leave at the given time since the origin, and if so
// TAT after them. It reports false, too, for what it does not cover: the GCRA has to be
// asked then.
//
// Mind that a stale time may be told to wait but mints no capacity: of decisions that
// are made in another order than their times were read, each leaves at a time at which
// it was due.
func (k *Ticks) Leave(tat int64, since time.Duration, n int64) (after int64, ok bool) {
	after, _, ok = k.LeaveLate(tat, since, since, n)
	return after, ok
}

// LeaveLate is [Ticks.Leave] for units of a caller that comes late because a timer was late,
// and would have come at the earlier time from. Had the units had to wait then, they are
// due when that wait would have ended; otherwise they are due when they leave. All times
// are since the origin.
func (k *Ticks) LeaveLate(tat int64, since, from time.Duration, n int64) (after int64, due time.Duration, ok bool) {
	if !k.Covers(since, n) || from < -k.horizon {
		return tat, 0, false
	}
	if k.interval == 0 {
		return tat, since, true
	}
	now := int64(since) * k.perNano
	early := k.early
	if n > 1 {
		early -= (min(n, k.burst) - 1) * k.interval
	}
	opens := tat - early
	if opens > now {
		return tat, 0, false
	}
	if from < since && opens > int64(from)*k.perNano {
		ns, frac := k.split(opens)
		if frac > 0 {
			ns++
		}
		return tat + n*k.interval, time.Duration(ns), true
	}
	if k.dry(tat, now) {
		tat = now
	}
	return tat + n*k.interval, since, true
}

// DryAt returns from when on a schedule with this TAT cannot be told from a fresh one, as
// nothing is owed any more. It is a time since the origin.
func (k *Ticks) DryAt(tat int64) time.Duration {
	if k.interval == 0 {
		return math.MinInt64
	}
	ns, frac := k.split(tat)
	if frac > 0 {
		// The nanosecond in which TAT lies ends at ns+1, and the fraction counts in it.
		ns += 2
	}
	return time.Duration(ns)
}

// split returns TAT in whole nanoseconds and the ticks beyond.
func (k *Ticks) split(tat int64) (ns, frac int64) {
	ns, frac = tat/k.perNano, tat%k.perNano
	if frac < 0 {
		ns, frac = ns-1, frac+k.perNano
	}
	return ns, frac
}

// dry compares with the start of the nanosecond for which now stands; see GCRA.tat.
func (k *Ticks) dry(tat, now int64) bool { return tat <= now-k.perNano }

// Fresh returns the TAT of a schedule that has let nothing leave.
func (k *Ticks) Fresh() int64 { return -k.perNano }

// Pack returns the TAT of g in ticks since the origin. It returns false if that lies
// beyond the horizon, if g runs at another rate by now, or has unsettled departures: what
// leaves in ticks is not told to them.
func (k *Ticks) Pack(g *GCRA, origin time.Time) (tat int64, ok bool) {
	since := g.tat.Sub(origin)
	switch {
	case g.emission != k.emission || g.unsettled != nil || since >= k.horizon:
		return 0, false
	case since < -k.horizon:
		return k.Fresh(), true // nothing has been owed for that long
	}
	return int64(since)*k.perNano + int64(g.frac), true
}

// Unpack sets the TAT of g, which must run at the rate of k, to what [Ticks.Leave] has
// made of a packed one.
func (k *Ticks) Unpack(g *GCRA, origin time.Time, tat int64) {
	ns, frac := k.split(tat)
	if g.emission != k.emission {
		g.emit(k.emission)
	}
	g.tat, g.frac = origin.Add(time.Duration(ns)), uint64(frac)
}

// Advance returns TAT in ticks since an origin that lies d later.
func (k *Ticks) Advance(tat int64, d time.Duration) int64 {
	return tat - int64(d)*k.perNano
}
