package discipline

import (
	"math/big"
	"slices"
)

// paying is a stretch of V in which a key counts with this weight. There is more than one
// if a key had the account to itself and V is far behind its calls.
type paying struct{ until, weight *big.Rat }

// Elapsed lets V run on.
func (e *EEVDF) Elapsed(units *big.Rat) {
	paid := least(units, e.unpaid)
	e.unpaid = new(big.Rat).Sub(e.unpaid, paid)
	switch {
	case e.StepClock:
		return
	case e.DebtClock:
		e.run(paid)
		return
	}
	unused := e.run(new(big.Rat).Add(e.unused, units))
	e.unused = least(unused, big.NewRat(e.line.Burst, 1))
	e.settle()
}

// settle has V pass all tags when no key has a call that may leave and all that left is paid. If
// the fluid is behind then, it has served calls in vain that went without leaving.
func (e *EEVDF) settle() {
	if e.unpaid.Sign() > 0 || slices.ContainsFunc(e.line.Keys, (*Key).Free) {
		return
	}
	for i := range e.tags {
		e.v = latest(e.v, e.tags[i].chain)
	}
}

// Held takes what stands unused from the fluid, too.
func (e *EEVDF) Held() { e.unused = new(big.Rat) }

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

// Reopened lets the fluid catch up with the first call behind a hold.
func (e *EEVDF) Reopened(cost int64) {
	behind := big.NewRat(min(cost, e.line.Burst), 1)
	e.unpaid = latest(e.unpaid, big.NewRat(max(e.line.Burst-cost, 0), 1))
	for _, k := range e.line.Keys {
		behind.Sub(behind, e.ahead(k))
	}
	if behind.Sign() > 0 {
		e.unused = e.run(least(behind.Add(behind, e.unused), big.NewRat(e.line.Burst, 1)))
	}
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
