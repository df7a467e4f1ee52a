package scheduler

import (
	"math/big"
	"time"
)

// CommitUnsettled implements [Settler].
//
// A settled schedule is the replay with the true costs, exactly, where the instant of a
// departure counts as Commit took it at the time: with the tolerance and, if TAT lay in the
// nanosecond of the departure, as TAT. A schedule that had known all costs before may have
// taken another fraction, so the two differ by less than 1 ns. While something is unsettled a
// change of the rate counts as a departure that costs nothing: none is due before it any more.
func (g *GCRA) CommitUnsettled(id uint64, due, left time.Time, n int64) {
	g.Commit(due, left, n)
	if g.owed(g.seen) != forever {
		g.unsettled = g.unsettled.add(g.emission.den, id, n)
	}
}

// Settle implements [Settler].
func (g *GCRA) Settle(id uint64, actual int64) error {
	mustBeMade(g.pace != nil, "GCRA")
	if err := checkActual(actual); err != nil {
		return err
	}
	i := g.unsettled.find(id)
	if i < 0 {
		return ErrFinal
	}
	var change amount
	if cost := g.unsettled.calls[i].cost; actual >= cost {
		change = g.emission.times(actual - cost).amount()
	} else {
		change = differenceOf(g.emission.den, amount{}, g.emission.times(cost-actual).amount())
	}
	g.unsettled, change = g.unsettled.settle(i, change)
	g.tat = g.tat.Add(time.Duration(change.units))
	g.advance(span{frac: change.frac})
	g.cutTAT(g.seen)
	return nil
}

// Unsettled implements [Settler].
func (g *GCRA) Unsettled() int { return g.unsettled.len() }

// amount returns a time as an amount of nanoseconds.
func (s span) amount() amount {
	a := whole(int64(s.ns))
	a.frac = s.frac
	return a
}

// distance returns how far TAT lies after t.
func (g *GCRA) distance(t time.Time) amount {
	a := whole(int64(g.tat.Sub(t)))
	a.frac = g.frac
	return a
}

// debtAt returns how far TAT lies after the instant d of a departure, for which a TAT in its
// nanosecond stands.
func (g *GCRA) debtAt(d time.Time) amount {
	debt := g.distance(d)
	if debt.units < 0 && g.owed(d) != dry {
		return amount{}
	}
	return debt
}

// convertUnsettled is the part of SetRate about unsettled departures, which now was told to, and
// about TAT. It returns q with a den in which all that is known of them is exact.
func (g *GCRA) convertUnsettled(now time.Time, q emission) emission {
	from := g.emission
	if from.period == 0 || q.period == 0 {
		// Without an interval no time is worth a unit, and what was owed is not.
		g.tat, g.frac = now, 0
		g.unsettled = g.unsettled.swallowed(q.den)
		return q
	}
	ratio := new(big.Rat).SetFrac(bigUint(q.period), bigUint(q.units))
	ratio.Mul(ratio, new(big.Rat).SetFrac(bigUint(from.units), bigUint(from.period)))
	worth := func(a amount) *big.Rat {
		r := new(big.Rat).SetFrac(bigUint(a.frac), bigUint(from.den))
		r.Add(r, new(big.Rat).SetInt64(a.units))
		return r.Mul(r, ratio)
	}
	owed := g.distance(now)
	early := owed.units < 0 // TAT lies in the nanosecond of now, and is the instant itself
	if early {
		owed = amount{}
		q.den = denFor(q.den, new(big.Rat).SetFrac(bigUint(g.frac), bigUint(from.den)).Denom())
	}
	q.den = denFor(q.den, worth(owed).Denom())
	for _, c := range g.unsettled.calls {
		if c.after.units < maxUnits && c.after.units > -maxUnits {
			q.den = denFor(q.den, worth(c.after).Denom())
		}
	}
	g.unsettled = g.unsettled.in(q.den, func(a amount) amount {
		down, _ := q.parts(worth(a))
		return down
	})
	if early {
		_, up := q.parts(new(big.Rat).SetFrac(bigUint(g.frac), bigUint(from.den)))
		g.tat, g.frac = g.tat.Add(time.Duration(up.units)), up.frac
	} else {
		_, up := q.parts(worth(owed))
		g.tat, g.frac = now.Add(time.Duration(up.units)), up.frac
	}
	return q
}

// parts returns a length of time in nanoseconds and parts of the den, rounded down and up.
func (e emission) parts(length *big.Rat) (down, up amount) {
	parts := new(big.Int).Mul(length.Num(), bigUint(e.den))
	parts, rest := parts.DivMod(parts, length.Denom(), new(big.Int)) // Euclidean: down
	split := func(parts *big.Int) amount {
		ns, frac := new(big.Int).DivMod(parts, bigUint(e.den), new(big.Int))
		if !ns.IsInt64() {
			return whole(int64(ns.Sign()) * maxUnits)
		}
		a := whole(ns.Int64())
		a.frac = frac.Uint64()
		return a
	}
	if down = split(parts); rest.Sign() == 0 {
		return down, down
	}
	return down, split(parts.Add(parts, big.NewInt(1)))
}
