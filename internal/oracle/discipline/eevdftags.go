package discipline

import "math/big"

// tags are those of one key.
type tags struct {
	seated       bool
	s, f, weight *big.Rat
	paying       []paying           // what the fluid has still to serve of what left
	floor        *big.Rat           // nil: none
	next         *big.Rat           // where the call behind the head starts; nil: where the head ends
	named        *big.Rat           // the weight that the key was given last
	chain        *big.Rat           // where the next call starts at the earliest
	level        int64              // units that have left
	anchor       anchor             // where the fluid took the key up when it had been dry
	entered      map[*Call]*big.Rat // V when the calls joined, for MarkAll
}

// An anchor says that the fluid had served the key this many units when V was v, and goes
// on from there. It is set where a key that was dry joins anew, and where a head takes the
// seat of another.
type anchor struct{ level, v *big.Rat } // nil: there is none

// in reports whether the anchor is at one of the levels from from to before to.
func (a anchor) in(from, to int64) bool {
	return a.v != nil && a.level.Cmp(big.NewRat(from, 1)) >= 0 && a.level.Cmp(big.NewRat(to, 1)) < 0
}

// through returns the V at which the fluid has served all levels from from to before to
// if it was at v at the first.
func (a anchor) through(v *big.Rat, from, to int64, weight *big.Rat) *big.Rat {
	level := big.NewRat(from, 1)
	if a.in(from, to) {
		v, level = a.v, a.level
	}
	d := new(big.Rat).Sub(big.NewRat(to, 1), level)
	return d.Quo(d, weight).Add(d, v)
}

// end is the tag of the last of all calls of a key.
func (e *EEVDF) end(k *Key) *big.Rat { return e.endBut(k, nil) }

// endBut is end without a call that has just joined.
func (e *EEVDF) endBut(k *Key, newcomer *Call) *big.Rat {
	t := &e.tags[k.ID]
	if !t.seated {
		return t.chain
	}
	var waiting []*Call
	for _, c := range k.Calls {
		if c != newcomer {
			waiting = append(waiting, c)
		}
	}
	end, level := e.behind(t, waiting[0]), t.level+waiting[0].Cost
	for _, c := range waiting[1:] {
		if at := t.entered[c]; e.MarkAll && at.Cmp(end) > 0 {
			end = at
		}
		end = t.anchor.through(end, level, level+c.Cost, t.named)
		level += c.Cost
	}
	return end
}

// waiting returns the units of a key that wait, but for those of one call.
func waiting(k *Key, but *Call) (n int64) {
	for _, c := range k.Calls {
		if c != but {
			n += c.Cost
		}
	}
	return n
}

// behind is where the call behind a head starts.
func (e *EEVDF) behind(t *tags, head *Call) *big.Rat {
	if t.next != nil {
		return t.next
	}
	return e.after(t, head.Cost)
}

// after is the tag at which a call of this cost ends that starts where the seat does.
func (e *EEVDF) after(t *tags, cost int64) *big.Rat {
	return t.anchor.through(t.s, t.level, t.level+cost, t.weight)
}

// sit gives the key's head its tags.
func (e *EEVDF) sit(k *Key) {
	t := &e.tags[k.ID]
	t.seated, t.next = false, nil
	head := k.Head()
	if head == nil {
		t.floor = nil
		return
	}
	if k.Blocked && !e.KeepBlocked {
		return
	}
	start := t.chain // a new weight may have put it before 0
	if a := t.anchor; a.v != nil && a.level.Cmp(big.NewRat(t.level, 1)) <= 0 {
		start = latest(start, a.v)
	}
	if e.MarkAll {
		start = latest(start, t.entered[head])
	}
	if e.LateStart {
		start = latest(start, e.v)
	}
	t.seated, t.s, t.weight = true, start, big.NewRat(k.Weight, 1)
	e.finish(t, head)
}

func (e *EEVDF) finish(t *tags, c *Call) {
	t.f = e.after(t, c.Cost)
	if t.floor != nil && t.f.Cmp(t.floor) < 0 {
		t.f = t.floor
	}
}

// reseat gives the seat of a head that did not leave to the head that there is now.
func (e *EEVDF) reseat(k *Key, old *Call) {
	t := &e.tags[k.ID]
	served := e.served(t, old.Cost)
	done := e.reached(t, old.Cost, k.Head().Cost)
	if !e.NoFloor {
		t.floor = t.f
	}
	if e.FreshSeat {
		t.chain = t.s
		t.entered[k.Head()], t.anchor = e.v, anchor{big.NewRat(t.level, 1), e.v}
		e.sit(k)
		return
	}
	t.next = nil
	ended := served.Cmp(big.NewRat(k.Head().Cost, 1)) >= 0
	e.goOn(k, served)
	e.finish(t, k.Head())
	if ended && !e.SlowSeat {
		t.f = done
		if t.floor != nil {
			t.f = latest(done, t.floor)
		}
	}
}

// reached is the tag at which the fluid has served this many units since the seat of a head
// of cost head began.
func (e *EEVDF) reached(t *tags, head, units int64) *big.Rat {
	if units <= head {
		return e.after(t, units)
	}
	end := e.after(t, head)
	if t.next != nil {
		end = t.next
	}
	return t.anchor.through(end, t.level+head, t.level+units, t.named)
}

// goOn says that the fluid has served a key so many units since the seat of its head
// began. What it serves behind the head from now on it serves with the new weight.
func (e *EEVDF) goOn(k *Key, served *big.Rat) {
	t := &e.tags[k.ID]
	head := k.Head().Cost
	if e.Retroactive || served.Sign() <= 0 || served.Cmp(big.NewRat(waiting(k, nil), 1)) >= 0 {
		return
	}
	beyond := new(big.Rat).Sub(served, big.NewRat(head, 1))
	if beyond.Sign() <= 0 {
		t.anchor = anchor{served.Add(served, big.NewRat(t.level, 1)), e.v}
		return
	}
	t.next = beyond.Sub(e.v, beyond.Quo(beyond, t.named))
	if t.anchor.v != nil && t.anchor.level.Cmp(big.NewRat(t.level+head, 1)) >= 0 {
		t.anchor = anchor{}
	}
}

// served returns the units that V has passed since the seat of a head of this cost began,
// as if there were no end of the calls behind it.
func (e *EEVDF) served(t *tags, head int64) *big.Rat {
	v, level, boundary := t.s, new(big.Rat), big.NewRat(head, 1)
	if t.next != nil && t.next.Cmp(e.v) <= 0 {
		v, level = t.next, boundary
	}
	if a := t.anchor; a.v != nil {
		if l := new(big.Rat).Sub(a.level, big.NewRat(t.level, 1)); l.Cmp(level) > 0 {
			v, level = a.v, l
		}
	}
	if e.v.Cmp(v) <= 0 {
		return level
	}
	// units returns how many the fluid has served since V was v.
	units := func(weight *big.Rat) *big.Rat {
		n := new(big.Rat).Sub(e.v, v)
		return n.Mul(n, weight)
	}
	if level.Cmp(boundary) < 0 {
		togo := new(big.Rat).Sub(boundary, level)
		if n := units(t.weight); n.Cmp(togo) <= 0 {
			return n.Add(n, level)
		}
		v, level = togo.Quo(togo, t.weight).Add(togo, v), boundary
	}
	n := units(t.named)
	return n.Add(n, level)
}

// joinAnew lets a key take part from V on, or from where the fluid will have served what
// has left of it.
func (e *EEVDF) joinAnew(t *tags) {
	t.anchor = anchor{big.NewRat(t.level, 1), e.v}
	if e.v.Cmp(t.chain) < 0 {
		t.anchor.v = t.chain
	}
}

func latest(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return b
	}
	return a
}
