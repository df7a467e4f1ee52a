package scheduler

import (
	"fmt"
	"time"
)

// GCRA is the Generic Cell Rate Algorithm in its virtual scheduling form (ITU-T
// Recommendation I.371, annex A; ATM Forum Traffic Management 4.1), used to pace:
// instead of telling which units do not conform it tells when each will.
//
// Its whole state is the theoretical arrival time, TAT: when the next unit would
// leave if the line never ran dry. With emission interval T and burst B
//
//	due of n units = max(t, TAT - (B - min(n, B))·T)
//	after them     TAT = max(TAT, d) + n·T    with d = max(due, left - J)
//
// It guarantees that at most max(B, c) + floor((w+J)/T) units leave in any closed window
// of length w, where c is the largest cost of a call in it: B at once after an idle
// spell, then one every T. (If T is no whole number of nanoseconds, due times are rounded
// up to one, and w counts as less than 1 ns longer.) The bound is reached. With B = 1, the
// usual choice, units are evenly spaced; a larger B makes it a token bucket of that
// capacity.
//
// The tolerance J (the standard's CDVT) is how much lateness of a departure the
// schedule absorbs, so that late timers do not add up and lower the rate. A
// departure that is later restarts the schedule at J before it: the time missed
// is lost and not caught up in a burst.
//
// A cost above B leaves when the bucket is full and is paid off afterwards, so no
// cost wedges the line: [GCRA.MaxCost] has no bound. The partner sees such a call at
// once: at 1 per second, two calls of 10 units lie 10 s apart, and that closed window
// holds 20. Where it counts, state a B of the largest cost, or a [TokenBucket], which
// refuses larger ones.
//
// Time is kept in integers, without rounding: at 3 per second the hour holds
// 10,800 units. Only the answer is rounded, up to the next whole nanosecond; that
// lateness of less than 1 ns is absorbed whatever the tolerance. [GCRA.Next] is exact
// for any ahead, whatever costs those units come in, as long as no departure is late.
//
// GCRA is not safe for concurrent use.
type GCRA struct {
	*pace
	// TAT is tat and frac/emission.den of a nanosecond more. Callers know instants in
	// whole nanoseconds and due times are rounded up to them, so an instant stands
	// for the nanosecond that ends with it: TAT is reached once it lies in there.
	// Otherwise each unit would lose a fraction.
	tat  time.Time
	frac uint64
	// seen is the latest d of a departure; a t before it is stale.
	seen time.Time

	unsettled *unsettled // in times, of which the fractions are in den; nil: none
}

// A pace is what a GCRA was made with, or changed to. It is changed by another one in its
// place, so that copies of a schedule share it: those of a million keys, say.
type pace struct {
	rate      Rate
	burst     int64
	tolerance time.Duration
	emission  emission
}

// A GCRAOption changes a [GCRA] that [NewGCRA] makes. A nil one is a programming error
// and panics.
type GCRAOption func(*GCRA)

// WithTolerance sets the tolerance J: the lateness of a departure that the
// schedule absorbs. The default is 0, which is strict.
func WithTolerance(j time.Duration) GCRAOption {
	return func(g *GCRA) { g.tolerance = j }
}

// NewGCRA returns a pacer for the rate that lets burst units leave back to back
// after an idle spell. With [Unlimited] the burst has no effect.
//
// It refuses an invalid rate, a burst below 1, a tolerance below 0 and a burst
// that takes longer than 292 years to fill.
func NewGCRA(r Rate, burst int64, opts ...GCRAOption) (*GCRA, error) {
	g := &GCRA{pace: &pace{burst: burst}}
	for _, opt := range opts {
		opt(g)
	}
	if burst < 1 {
		return nil, fmt.Errorf("scheduler: burst %d: must be at least 1", burst)
	}
	if g.tolerance < 0 {
		return nil, fmt.Errorf("scheduler: tolerance %v: must not be negative", g.tolerance)
	}
	if err := checkRate(r, burst); err != nil {
		return nil, err
	}
	g.rate, g.emission = r, newEmission(r)
	return g, nil
}

func checkRate(r Rate, burst int64) error {
	if err := r.Validate(); err != nil {
		return err
	}
	if r.For(burst) == never {
		return fmt.Errorf("scheduler: burst %d at rate %v: takes longer than %v", burst, r, never)
	}
	return nil
}

// Rate returns the rate that the schedule runs at.
func (g *GCRA) Rate() Rate {
	mustBeMade(g.pace != nil, "GCRA")
	return g.rate
}

// Burst returns how many units may leave back to back after an idle spell.
func (g *GCRA) Burst() int64 {
	mustBeMade(g.pace != nil, "GCRA")
	return g.burst
}

// Tolerance returns J, the lateness that the schedule absorbs.
func (g *GCRA) Tolerance() time.Duration {
	mustBeMade(g.pace != nil, "GCRA")
	return g.tolerance
}

// TAT returns the theoretical arrival time, rounded up to whole nanoseconds: when the
// next unit would leave if the line never ran dry. It is the zero Time before the first
// unit has left.
func (g *GCRA) TAT() time.Time { return g.tat.Add(span{frac: g.frac}.ceil()) }

// MaxCost returns the largest int64: every cost leaves.
func (g *GCRA) MaxCost() int64 {
	if g.pace == nil {
		return 0
	}
	return maxInt64
}

// Next implements [Scheduler].
func (g *GCRA) Next(t time.Time, ahead, n int64) time.Time {
	mustBeMade(g.pace != nil, "GCRA")
	t = later(t, g.seen)
	ahead, n = max(ahead, 0), max(n, 1)

	wait := g.owed(t)
	if wait == dry {
		if ahead == 0 {
			return t
		}
		wait = justNow
	}
	// A burst lets n units go this many intervals before TAT.
	if early := g.burst - min(n, g.burst); ahead >= early {
		wait = g.emission.plus(wait, g.emission.times(ahead-early))
	} else {
		wait = g.emission.minus(wait, g.emission.times(early-ahead))
	}
	switch wait {
	case dry:
		return t
	case forever:
		return t.Add(never)
	}
	return t.Add(wait.ceil() - 1)
}

// Commit implements [Scheduler].
func (g *GCRA) Commit(due, left time.Time, n int64) {
	mustBeMade(g.pace != nil, "GCRA")
	d := due
	if left.Sub(due) > g.tolerance {
		d = left.Add(-g.tolerance)
	}
	d = later(d, g.seen)
	g.seen = d
	g.departs(d)
	g.advance(g.emission.times(n))
	g.cutTAT(d)
}

// departs has TAT be d, the instant of a departure, if that is later. A TAT in the nanosecond
// for which d stands is the instant itself: the fraction is kept.
func (g *GCRA) departs(d time.Time) {
	if g.unsettled != nil {
		g.unsettled.then(g.debtAt(d))
	}
	if g.owed(d) != dry {
		return
	}
	g.tat, g.frac = d, 0
	if g.unsettled == nil {
		// Without a fraction any den will do; a small one keeps [GCRA.Ticks] possible.
		if g.emission.den != g.emission.units {
			g.emit(emission{g.emission.units, g.emission.period, g.emission.units})
		}
	}
}

// cutTAT keeps TAT as far from an instant as a wait can be told. Beyond that, each large cost
// would move it by centuries, to years that no state can hold.
func (g *GCRA) cutTAT(from time.Time) {
	if g.owed(from) == forever {
		g.tat, g.frac = from.Add(never), 0
		g.unsettled = nil // it cannot be told any more what they cost
	}
}

// SetRate changes the rate as of now. Units that are owed stay owed, and their
// time is recomputed: half a unit owed at 10/s is half a unit owed at 5/s. A time of
// more than 292 years was cut to that, and counts as that many units. On an error
// nothing has changed.
func (g *GCRA) SetRate(now time.Time, r Rate) error {
	mustBeMade(g.pace != nil, "GCRA")
	if err := checkRate(r, g.burst); err != nil {
		return err
	}
	now = later(now, g.seen)
	to, left := newEmission(r), span{frac: g.frac}
	if g.unsettled != nil {
		g.seen = now
		g.departs(now)
		g.pace = &pace{r, g.burst, g.tolerance, g.convertUnsettled(now, to)}
		g.cutTAT(now)
		return nil
	}
	if owed := g.emission.minus(g.owed(now), justNow); owed != (span{}) {
		left, to = g.emission.convert(owed, to)
		g.tat = now
	} else {
		// TAT has come, and stays when it was: what is due since then leaves late.
		left, to = g.emission.rebase(left, to)
	}
	g.pace = &pace{r, g.burst, g.tolerance, to}
	g.frac = 0
	g.advance(left)
	return nil
}

// Forfeit gives up what was saved up until t: of the units that might leave at t
// back to back only the given number may, and further ones each T later. A line that was
// held calls it when it goes on, so that the time of the hold is no licence for a burst.
// A keep above the burst counts as the burst.
func (g *GCRA) Forfeit(t time.Time, keep int64) {
	mustBeMade(g.pace != nil, "GCRA")
	t = later(t, g.seen)
	least := g.emission.times(g.burst - min(max(keep, 1), g.burst))
	if g.unsettled != nil {
		g.unsettled.then(differenceOf(g.emission.den, g.distance(t), least.amount()))
	}
	if g.emission.minus(g.owed(t), g.emission.plus(justNow, least)) == (span{}) {
		g.tat, g.frac = t, 0
		g.advance(least)
	}
}

// Forfeited returns the schedule as it would be after [GCRA.Forfeit], to ask it when
// something would leave. It shares nothing with g, which is unchanged.
func (g *GCRA) Forfeited(t time.Time, keep int64) Scheduler {
	other := *g
	other.unsettled = nil
	other.Forfeit(t, keep)
	return &other
}

// emit changes how fractions of a nanosecond are counted.
func (g *GCRA) emit(e emission) { g.pace = &pace{g.rate, g.burst, g.tolerance, e} }

// owed returns how far TAT lies after the start of the nanosecond that ends at t,
// which stands for t; see GCRA.tat. It is dry if TAT is not after that start.
func (g *GCRA) owed(t time.Time) span {
	d := g.tat.Sub(t)
	switch {
	case d < -1:
		return dry
	case d >= never-1:
		return forever
	}
	return span{ns: uint64(d + 1), frac: g.frac}
}

// What owed returns if the line has run dry before t, and if TAT is t.
var (
	dry     = span{}
	justNow = span{ns: 1}
)

// advance moves TAT by s.
func (g *GCRA) advance(s span) {
	s = g.emission.plus(s, span{frac: g.frac})
	g.tat, g.frac = g.tat.Add(time.Duration(s.ns)), s.frac
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// For returns how long n units take at the rate, rounded up to whole nanoseconds; see [Rate.For].
func (g *GCRA) For(n int64) time.Duration {
	mustBeMade(g.pace != nil, "GCRA")
	return g.emission.times(n).ceil()
}
