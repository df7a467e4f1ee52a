package oracle

import "math/big"

// Advance lets the fluid run until t.
func (f *Fluid) Advance(t *big.Rat) {
	if f.now.Cmp(f.openAt) < 0 {
		until := latest(f.now, earliest(t, f.openAt))
		f.lost = sum(f.lost, f.pay(until))
		f.now, f.unpaidThen = until, f.unpaid
	}
	f.pay(latest(f.now, t))
	if f.tokens.Sign() < 0 {
		units := earliest(less(new(big.Rat), f.tokens), over(latest(new(big.Rat), less(t, f.now)), f.interval))
		f.tokens, f.clock, f.now = sum(f.tokens, units), sum(f.clock, units), sum(f.now, times(units, f.interval))
		if f.tokens.Sign() < 0 {
			return
		}
	}
	for {
		// What the bucket holds is served at once, and then what comes in.
		amount, atOnce := f.tokens, true
		if amount.Sign() == 0 {
			amount, atOnce = over(less(t, f.now), f.interval), false
		}
		if f.openAt.Cmp(f.now) > 0 || amount.Sign() <= 0 {
			return
		}
		weights, step := f.next(amount)
		if weights == nil {
			f.idle(t)
			return
		}
		start := f.clock
		if atOnce {
			f.tokens = less(f.tokens, step)
		} else {
			f.now = sum(f.now, times(step, f.interval))
			f.clock = sum(f.clock, step)
		}
		f.serve(start, over(step, weights))
	}
}

// next returns the weights of the keys with a backlog, nil if there is none, and how many
// of the given units are served until one of them runs dry or changes.
func (f *Fluid) next(amount *big.Rat) (weights, step *big.Rat) {
	var rise *big.Rat // of the level
	until := func(r *big.Rat) {
		if r.Sign() > 0 && (rise == nil || r.Cmp(rise) < 0) {
			rise = r
		}
	}
	for _, k := range f.keys {
		if k.floor != nil {
			until(less(k.floor, f.level))
		}
		backlog := less(k.total(), k.service)
		if backlog.Sign() <= 0 {
			continue
		}
		if weights == nil {
			weights = new(big.Rat)
		}
		weights = sum(weights, k.weight)
		until(over(backlog, k.weight))
		if len(k.later) > 0 {
			until(over(less(k.later[0].from, k.service), k.weight))
		}
	}
	if weights == nil {
		return nil, nil
	}
	return weights, earliest(amount, times(rise, weights))
}

// serve raises the level while the clock goes from start to where it is.
func (f *Fluid) serve(start, rise *big.Rat) {
	f.level = sum(f.level, rise)
	before := less(f.charged, f.owed())
	var touched []*FluidKey
	for _, k := range f.keys {
		if less(k.total(), k.service).Sign() <= 0 {
			continue
		}
		if n := len(k.curve); n == 0 || k.curve[n-1].clock.Cmp(start) != 0 {
			k.curve = append(k.curve, served{start, k.service, before})
		}
		k.service = sum(k.service, times(rise, k.weight))
		k.settleOwed()
		touched = append(touched, k)
	}
	after := less(f.charged, f.owed())
	for _, k := range touched {
		k.curve = append(k.curve, served{f.clock, k.service, after})
		k.reweigh()
	}
	f.passFloors(after)
}

// idle lets time pass in which no key has a backlog. All calls are finished then.
func (f *Fluid) idle(t *big.Rat) {
	for _, k := range f.keys {
		if k.floor != nil {
			k.floor, k.floorAt = nil, served{clock: f.clock, charges: f.charged}
		}
	}
	units := over(less(t, f.now), f.interval)
	f.now, f.clock = t, sum(f.clock, units)
	f.tokens = earliest(f.burst, sum(f.tokens, units))
}

func (f *Fluid) passFloors(charges *big.Rat) {
	for _, k := range f.keys {
		if k.floor != nil && k.floor.Cmp(f.level) <= 0 {
			k.floor, k.floorAt = nil, served{clock: f.clock, charges: charges}
		}
	}
}

// owed returns the units of all charges that the fluid has not served yet.
func (f *Fluid) owed() *big.Rat {
	all := new(big.Rat)
	for _, k := range f.keys {
		all.Add(all, k.owed)
	}
	return all
}

func sum(a, b *big.Rat) *big.Rat { return new(big.Rat).Add(a, b) }

func less(a, b *big.Rat) *big.Rat { return new(big.Rat).Sub(a, b) }

func times(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) }

func over(a, b *big.Rat) *big.Rat { return new(big.Rat).Quo(a, b) }

func earliest(a, b *big.Rat) *big.Rat {
	if b.Cmp(a) < 0 {
		return b
	}
	return a
}
