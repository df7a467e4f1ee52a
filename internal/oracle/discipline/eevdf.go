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
	AnyStart    bool // S does not matter (weighted fair queueing)
	ForgetOnDry bool // a key leaves the sum when nothing of it waits

	line   *Line
	v      *big.Rat
	unused *big.Rat // what the fluid's own bucket holds
	unpaid *big.Rat // what has left and is not paid
	tags   []tags
}

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

// paying is a stretch of V in which a key counts with this weight. There is more than one
// if a key had the account to itself and V is far behind its calls.
type paying struct{ until, weight *big.Rat }

// New returns the rule for a line.
func (e EEVDF) New(l *Line) Rule {
	e.line, e.v, e.unused, e.unpaid = l, new(big.Rat), big.NewRat(l.Burst, 1), new(big.Rat)
	for _, k := range l.Keys {
		e.tags = append(e.tags, tags{named: big.NewRat(k.Weight, 1), chain: new(big.Rat), entered: map[*Call]*big.Rat{}})
	}
	return &e
}

// Elapsed lets V run on.
func (e *EEVDF) Elapsed(units *big.Rat) {
	if e.StepClock {
		return
	}
	if e.DebtClock {
		paid := least(units, e.unpaid)
		e.unpaid = new(big.Rat).Sub(e.unpaid, paid)
		e.run(paid)
		return
	}
	unused := e.run(new(big.Rat).Add(e.unused, units))
	e.unused = least(unused, big.NewRat(e.line.Burst, 1))
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
	for _, k := range e.line.Keys {
		behind.Sub(behind, e.ahead(k))
	}
	if behind.Sign() > 0 {
		e.unused = least(behind.Add(behind, e.unused), big.NewRat(e.line.Burst, 1))
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
	e.goOn(k, served)
	e.finish(t, k.Head())
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
	if t.floor != nil {
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

func latest(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return b
	}
	return a
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
	if !e.AnyStart {
		early, late := s.s.Cmp(e.v) <= 0, t.s.Cmp(e.v) <= 0
		if early != late {
			return early
		}
		if o := s.s.Cmp(t.s); !early && o != 0 {
			return o < 0
		}
	}
	if o := s.f.Cmp(t.f); o != 0 {
		return o < 0
	}
	return before(a.Head(), b.Head()) < 0
}
