package partner

import "time"

// A line is what a gate keeps about one customer.
type line struct {
	meter meter
	hold  hold
	counts
}

// counts are the part of a score that is kept for each customer.
type counts struct {
	tally      tally
	refused    int64
	duringHold int64
}

func (c *counts) score() Score {
	return Score{
		Accepted:        c.tally.calls,
		AcceptedUnits:   c.tally.units,
		Refused:         c.refused,
		CallsDuringHold: c.duringHold,
		WorstWindow:     c.tally.worst,
		SmallestGap:     c.tally.gap,
	}
}

// lineLocked returns the line of the customer of that name.
func (g *gate) lineLocked(name string) *line {
	if l, ok := g.lines[name]; ok {
		return l
	}
	if len(g.lines) >= maxLines && name != others {
		return g.lineLocked(others)
	}
	l := &line{meter: g.limit.meter(g.epoch), counts: counts{tally: tally{window: g.limit.Window}}}
	g.lines[name] = l
	return l
}

// relimitLocked gives every line a meter for the gate's limit. The calls of the
// last window are charged to it, so a limit that drops finds them on the books.
func (g *gate) relimitLocked() {
	g.total.tally.window = g.limit.Window
	for _, l := range g.lines {
		l.meter = g.limit.meter(g.epoch)
		for _, a := range l.tally.log.log {
			l.meter.charge(a.at, a.units)
		}
		l.tally.window = g.limit.Window
	}
}

// noteLocked counts a call of the line that arrived at that instant, if it came too
// early.
func (g *gate) noteLocked(l *line, at time.Duration) {
	if l.hold.covers(at) {
		l.duringHold++
		g.total.duringHold++
	}
}

func (g *gate) refuseLocked(l *line) {
	l.refused++
	g.total.refused++
}
