package discipline

import "math/big"

// EEVDF serves, of the keys whose tag S the fluid has reached, the one with the least tag
// F. V is the fluid's virtual time. It has a bucket of its own: it serves as fast as the
// account would, as long as it has a backlog.
//
// A key's head sits on a seat: its S, its weight, and the F that no call may go below.
// A call that takes the place of a head that went without leaving takes its seat. The next
// call starts where the head's cost ends, and not at the F that the floor raised.
//
// The fields that are bools are simpler rules, each of which breaks the promise.
type EEVDF struct {
	LateStart   bool // S is max(V, F) when the call becomes head
	MarkAll     bool // S is never before V when the call joined, also if the fluid serves its key
	StepClock   bool // V moves at departures only, by what left
	DebtClock   bool // V runs by what has left and is paid, and not by what stands unused
	ResetEmpty  bool // an empty line starts anew
	Retag       bool // a new weight changes the tags of the head
	Retroactive bool // a new weight counts from the tag of the next call on, also if V has passed that
	NoFloor     bool // a successor's F may be less than that of the head that went
	FreshSeat   bool // a successor starts at V
	KeepBlocked bool // a blocked head keeps its tags, and its key stays in the sum
	ChainFloor  bool // the next call starts at F, also where the floor raised it
	SlowSeat    bool // a successor's F counts from the seat also if the fluid has ended with it
	ForgetOnDry bool // a key leaves the sum when nothing of it waits
	Credit      bool // what the account gets back goes to the key, also if the fluid has begun with its head
	KeepLost    bool // the fluid stays ahead by what the account cannot catch up after a refund

	line   *Line
	v      *big.Rat
	unused *big.Rat // what the fluid's own bucket holds
	unpaid *big.Rat // what has left and is not paid
	hold   hold
	tags   []tags
}

// New returns the rule for a line.
func (e EEVDF) New(l *Line) Rule {
	e.line, e.v, e.unused, e.unpaid = l, new(big.Rat), big.NewRat(l.Burst, 1), new(big.Rat)
	e.hold = hold{new(big.Rat), new(big.Rat), new(big.Rat)}
	for _, k := range l.Keys {
		e.tags = append(e.tags, tags{named: big.NewRat(k.Weight, 1), chain: new(big.Rat), entered: map[*Call]*big.Rat{}})
	}
	return &e
}

// V returns the fluid's virtual time.
func (e *EEVDF) V() *big.Rat { return e.v }

// Tags returns those of a key's head, and false if it has none that may leave.
func (e *EEVDF) Tags(k *Key) (s, f *big.Rat, ok bool) {
	t := &e.tags[k.ID]
	return t.s, t.f, t.seated
}

// Joined is told of a new call.
func (e *EEVDF) Joined(c *Call) {
	k := c.Key
	t := &e.tags[k.ID]
	// A key that the fluid serves goes on from its last tag. One that it does not starts at V.
	t.entered[c] = e.v
	switch {
	case !t.seated:
		e.joinAnew(t)
	case e.endBut(k, c).Cmp(e.v) <= 0:
		t.anchor = anchor{big.NewRat(t.level+waiting(k, c), 1), e.v}
	}
	switch {
	case k.Head() != c:
	case !t.seated:
		e.sit(k)
	default:
		e.reseat(k, k.Calls[1])
	}
}

// Gone is told of a call that does not leave.
func (e *EEVDF) Gone(c *Call, wasHead bool) {
	t := &e.tags[c.Key.ID]
	delete(t.entered, c)
	switch {
	case !wasHead || !t.seated:
	case len(c.Key.Calls) == 0:
		t.chain = t.s
		e.sit(c.Key)
	default:
		e.reseat(c.Key, c)
	}
	e.empty()
}

// Left is told of a departure.
func (e *EEVDF) Left(c *Call) {
	t := &e.tags[c.Key.ID]
	delete(t.entered, c)
	chain := e.behind(t, c)
	t.level += c.Cost
	if a := t.anchor; t.next != nil && a.v != nil && a.level.Cmp(big.NewRat(t.level, 1)) < 0 {
		t.anchor = anchor{} // next knows better
	}
	t.chain, t.next = chain, nil
	if e.ChainFloor {
		t.chain = t.f
	}
	t.paying = append(t.paying, paying{t.chain, t.weight})
	e.unpaid = new(big.Rat).Add(e.unpaid, big.NewRat(c.Cost, 1))
	e.sit(c.Key)
	if e.StepClock {
		e.run(big.NewRat(c.Cost, 1))
	}
	e.empty()
}

func (e *EEVDF) empty() {
	if !e.ResetEmpty {
		return
	}
	for _, k := range e.line.Keys {
		if k.Head() != nil {
			return
		}
	}
	for i := range e.tags {
		e.tags[i].chain = e.v
	}
}

// Charged is told of units that left without asking. They are before the head of their
// key, and nobody else's.
func (e *EEVDF) Charged(k *Key, units int64) {
	t := &e.tags[k.ID]
	e.unpaid = new(big.Rat).Add(e.unpaid, big.NewRat(units, 1))
	d := big.NewRat(units, 1)
	if !t.seated {
		t.level += units
		t.chain = latest(t.chain, e.v)
		t.chain = d.Quo(d, t.named).Add(d, t.chain)
		t.paying = append(t.paying, paying{t.chain, t.named})
		return
	}
	if t.floor != nil && t.floor.Cmp(e.v) > 0 {
		t.floor = new(big.Rat).Add(t.floor, new(big.Rat).Quo(d, t.weight))
	}
	served := least(e.served(t, k.Head().Cost), big.NewRat(waiting(k, nil), 1))
	ahead := new(big.Rat).Sub(served, d) // of the head, after the charge
	start := latest(t.s, e.v)            // of what the fluid has not served
	t.level += units
	t.anchor, t.next = anchor{}, nil
	if t.s.Cmp(e.v) > 0 {
		t.s = d.Quo(d, t.weight).Add(d, t.s)
	} else {
		t.s = new(big.Rat).Sub(e.v, new(big.Rat).Quo(ahead, t.weight))
	}
	if t.s.Cmp(e.v) > 0 {
		t.paying = append(t.paying, paying{start, t.weight}, paying{t.s, t.weight})
	}
	t.chain = latest(t.chain, t.s)
	e.goOn(k, ahead)
	e.finish(t, k.Head())
}

// Refunded is told that so many units that had left did not. Those that the fluid has not served
// it never will. What the account gets back beyond that goes to the calls that wait, but for a key
// that is not ahead any more; that, and what is more, goes to all.
func (e *EEVDF) Refunded(k *Key, units *big.Rat) {
	t := &e.tags[k.ID]
	back := least(units, e.unpaid)
	e.unpaid = new(big.Rat).Sub(e.unpaid, back)
	e.hold.unpaid = latest(new(big.Rat).Sub(e.hold.unpaid, units), new(big.Rat)) // as if it had been known
	undone := least(units, new(big.Rat).Neg(e.owes(t)))
	if undone.Sign() > 0 {
		e.undo(k, undone)
	}
	gain := new(big.Rat).Sub(back, undone)
	switch {
	case e.Credit:
		gain.Sub(gain, e.credit(k, gain))
	default:
		gain.Sub(gain, e.credit(k, least(gain, undone)))
	}
	if e.KeepLost {
		gain = latest(gain, new(big.Rat))
	}
	e.unused = gain.Add(gain, e.unused) // it stands still during a hold
}

// credit has the fluid have served so many units more of the calls of a key, or all of them. It
// returns how many.
func (e *EEVDF) credit(k *Key, units *big.Rat) *big.Rat {
	t := &e.tags[k.ID]
	if !t.seated || units.Sign() <= 0 {
		return new(big.Rat)
	}
	all := big.NewRat(waiting(k, nil), 1)
	ahead := least(e.served(t, k.Head().Cost), all)
	units = least(units, new(big.Rat).Sub(all, ahead))
	ahead = new(big.Rat).Add(ahead, units)
	t.s = new(big.Rat).Quo(ahead, t.weight)
	t.s.Sub(e.v, t.s)
	t.chain, t.anchor, t.next = t.s, anchor{}, nil
	e.goOn(k, ahead)
	e.finish(t, k.Head())
	return units
}

// undo takes back the latest units of what has left of a key.
func (e *EEVDF) undo(k *Key, units *big.Rat) {
	t := &e.tags[k.ID]
	for units.Sign() > 0 {
		last := &t.paying[len(t.paying)-1]
		from := e.v
		if n := len(t.paying); n > 1 {
			from = latest(from, t.paying[n-2].until)
		}
		within := new(big.Rat).Sub(last.until, from)
		within.Mul(within, last.weight)
		part := least(units, within)
		last.until = new(big.Rat).Sub(last.until, new(big.Rat).Quo(part, last.weight))
		if t.chain = last.until; part == within {
			t.paying = t.paying[:len(t.paying)-1]
			t.chain = from
		}
		units = new(big.Rat).Sub(units, part)
	}
	if !t.seated {
		return
	}
	if t.floor != nil && t.floor.Cmp(e.v) > 0 {
		rise := new(big.Rat).Sub(t.s, t.chain)
		t.floor = rise.Sub(t.floor, rise)
	}
	t.s, t.anchor, t.next = t.chain, anchor{}, nil
	e.finish(t, k.Head())
}

// Blocked is told that a key's own limits forbid its head.
func (e *EEVDF) Blocked(k *Key) {
	t := &e.tags[k.ID]
	if !t.seated || e.KeepBlocked {
		return
	}
	t.chain, t.seated, t.floor = t.s, false, nil
}

// Unblocked is told that they allow it.
func (e *EEVDF) Unblocked(k *Key) {
	t := &e.tags[k.ID]
	if t.seated {
		return
	}
	for _, c := range k.Calls {
		t.entered[c] = e.v
	}
	e.joinAnew(t)
	e.sit(k)
}

// Reweighed is told of a new weight. It does not count for the service that the fluid has
// given to the calls behind the head by now.
func (e *EEVDF) Reweighed(k *Key) {
	t := &e.tags[k.ID]
	if !t.seated {
		t.named = big.NewRat(k.Weight, 1)
		return
	}
	served := e.served(t, k.Head().Cost) // with the weight that counts until now
	t.named = big.NewRat(k.Weight, 1)
	if e.Retag {
		t.weight = t.named
		e.finish(t, k.Head())
		return
	}
	e.goOn(k, served)
}

// Next returns the key that goes next.
func (e *EEVDF) Next() *Key {
	var best *Key
	for _, k := range e.line.Keys {
		if k.Free() && (best == nil || e.sooner(k, best)) {
			best = k
		}
	}
	return best
}

// sooner reports whether a goes before b. Of keys that the fluid has not reached, the one
// goes first that it reaches first.
func (e *EEVDF) sooner(a, b *Key) bool {
	s, t := &e.tags[a.ID], &e.tags[b.ID]
	early, late := s.s.Cmp(e.v) <= 0, t.s.Cmp(e.v) <= 0
	if early != late {
		return early
	}
	if o := s.s.Cmp(t.s); !early && o != 0 {
		return o < 0
	}
	if o := s.f.Cmp(t.f); o != 0 {
		return o < 0
	}
	return before(a.Head(), b.Head()) < 0
}
