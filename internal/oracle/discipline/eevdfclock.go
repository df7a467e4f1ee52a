package discipline

import "math/big"

// paying is a stretch of V in which a key counts with this weight. There is more than one
// if a key had the account to itself and V is far behind its calls.
type paying struct{ until, weight *big.Rat }

// Elapsed lets V run on.
func (e *EEVDF) Elapsed(units *big.Rat) {
	paid := least(units, e.unpaid)
	e.unpaid = new(big.Rat).Sub(e.unpaid, paid)
	e.hold.since = new(big.Rat).Add(e.hold.since, units)
	switch {
	case e.StepClock:
		return
	case e.DebtClock:
		e.run(paid)
		return
	}
	unused := e.run(new(big.Rat).Add(e.unused, units))
	e.unused = least(unused, big.NewRat(e.line.Burst, 1))
}

// hold is what a hold does, until a call leaves behind it.
type hold struct {
	lost   *big.Rat // what it has kept from the fluid, and not from the account
	unpaid *big.Rat // when it ended
	since  *big.Rat // units that have come since
}

// Stood lets the fluid stand still while the account is paid for what has left.
func (e *EEVDF) Stood(units *big.Rat) {
	paid := least(units, e.unpaid)
	e.unpaid = new(big.Rat).Sub(e.unpaid, paid)
	lost := new(big.Rat).Add(e.hold.lost, e.unused)
	e.hold = hold{lost.Add(lost, paid), e.unpaid, new(big.Rat)}
	e.unused = new(big.Rat)
}

// owes returns, as a negative number, what the fluid has still to serve of what left.
func (e *EEVDF) owes(t *tags) *big.Rat {
	n, at := new(big.Rat), e.v
	for _, p := range t.paying {
		if p.until.Cmp(at) > 0 {
			d := new(big.Rat).Sub(at, p.until)
			n.Add(n, d.Mul(d, p.weight))
			at = p.until
		}
	}
	return n
}

// Reopened gives the fluid what the account has gained by a hold, less what it forfeits.
func (e *EEVDF) Reopened(cost int64) {
	bound := big.NewRat(e.line.Burst-min(cost, e.line.Burst), 1)
	gain := new(big.Rat).Sub(bound, e.hold.unpaid)
	if gain.Sign() < 0 {
		gain = new(big.Rat)
	}
	e.unused = gain.Add(gain.Sub(e.hold.lost, gain), e.unused) // below 0: it has served more than the account will
	e.unpaid = latest(e.unpaid, bound.Sub(bound, e.hold.since))
	most := new(big.Rat).Sub(big.NewRat(e.line.Burst, 1), e.unpaid)
	for _, k := range e.line.Keys {
		most.Sub(most, e.ahead(k))
	}
	e.unused = e.run(least(e.unused, most))
	e.hold = hold{new(big.Rat), new(big.Rat), new(big.Rat)}
}

// ahead returns how many units of a key the fluid has served that have not left.
func (e *EEVDF) ahead(k *Key) *big.Rat {
	t := &e.tags[k.ID]
	if !t.seated {
		return e.owes(t)
	}
	if e.v.Cmp(t.s) < 0 {
		return e.owes(t)
	}
	return least(e.served(t, k.Head().Cost), big.NewRat(waiting(k, nil), 1))
}

func least(a, b *big.Rat) *big.Rat {
	if b.Cmp(a) < 0 {
		return b
	}
	return a
}

// run lets the fluid serve so many units, or as many as there are. It returns the rest.
func (e *EEVDF) run(units *big.Rat) *big.Rat {
	for units.Sign() > 0 {
		weights, rise := new(big.Rat), (*big.Rat)(nil)
		for _, k := range e.line.Keys {
			weight, end := e.stretch(k)
			if end.Cmp(e.v) <= 0 {
				continue
			}
			weights.Add(weights, weight)
			if togo := new(big.Rat).Sub(end, e.v); rise == nil || togo.Cmp(rise) < 0 {
				rise = togo
			}
		}
		if rise == nil {
			return units
		}
		step := least(new(big.Rat).Mul(rise, weights), units)
		units = new(big.Rat).Sub(units, step)
		e.v = new(big.Rat).Add(e.v, new(big.Rat).Quo(step, weights))
	}
	return units
}

// stretch returns the weight with which the fluid serves a key, and the V until which it
// does so. The key is not served if V is there.
func (e *EEVDF) stretch(k *Key) (weight, until *big.Rat) {
	t := &e.tags[k.ID]
	if !t.seated {
		if e.ForgetOnDry {
			return nil, new(big.Rat)
		}
		return e.pays(t)
	}
	if t.s.Cmp(e.v) > 0 {
		return e.pays(t)
	}
	if end := e.behind(t, k.Head()); end.Cmp(e.v) > 0 {
		return t.weight, end
	}
	return big.NewRat(k.Weight, 1), e.end(k)
}

// pays is stretch for what has left.
func (e *EEVDF) pays(t *tags) (weight, until *big.Rat) {
	for len(t.paying) > 0 && t.paying[0].until.Cmp(e.v) <= 0 {
		t.paying = t.paying[1:]
	}
	if len(t.paying) == 0 {
		return nil, e.v
	}
	return t.paying[0].weight, t.paying[0].until
}
