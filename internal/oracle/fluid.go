package oracle

import (
	"math/big"
	"slices"
)

// Fluid is an ideal sharing of one account: a liquid that all keys with a backlog are
// served at every instant, each in proportion to its weight. It has its own bucket of
// burst units, which fills by one unit in T, and it knows no tags. A test tells it the
// events of a real run in the order in which they came, and learns how much later than
// the fluid a call left.
//
// What it counts is units of each key. A call is finished when its key has been served
// the costs of all calls that left up to and with it, in the order in which they left.
// The service that a head was given is its key's: it goes on to the call that takes the
// head's place. But no call of that key is finished before the head that went without
// leaving would have been: otherwise many keys whose heads go at once would all be
// finished at once, and no line could keep up.
//
// A key that is blocked is served only for what has left already.
type Fluid struct {
	Classes  int      // how many there are; 0 is 1
	Overtake *big.Rat // how much later a call may come than one of the next class and leave before it

	interval *big.Rat // T
	burst    *big.Rat
	tokens   *big.Rat // what the bucket holds
	openAt   *big.Rat // the account is held until then
	reopened bool     // nothing has left since a hold
	now      *big.Rat
	clock    *big.Rat // units that the account could have served by now, one in T, but for the burst
	level    *big.Rat // units served for each unit of weight
	charged  *big.Rat // units of charges so far
	keys     []*FluidKey
	made     int
}

// A FluidKey is one key of the fluid.
type FluidKey struct {
	weight  *big.Rat
	later   []reweighing // in the order of from
	named   *big.Rat     // the weight that was given last
	seat    *big.Rat     // the weight of the head
	calls   []*FluidCall
	blocked bool

	left    *big.Rat // the costs of what left and was charged
	waiting *big.Rat // the costs of what waits
	service *big.Rat
	curve   []served // how service grew
	floor   *big.Rat // the level before which no call is finished; nil: none, or reached
	floorAt served   // when the last floor was reached
	owed    *big.Rat // units of charges that the fluid has not served
}

// A reweighing is a weight that counts from this much service of the key on.
type reweighing struct{ from, weight *big.Rat }

// served is a point of a curve: at this reading of the clock the service was this much.
type served struct {
	clock, service *big.Rat
	charges        *big.Rat // units of charges that the fluid had served by then
}

// A FluidCall is one call of a key.
type FluidCall struct {
	Key   *FluidKey
	Cost  int64
	Class int

	rank *big.Rat
	seq  int
}

// NewFluid returns a fluid at instant 0 whose bucket is full.
func NewFluid(interval *big.Rat, burst int64) *Fluid {
	return &Fluid{
		interval: interval, burst: Instant(burst), tokens: Instant(burst), openAt: new(big.Rat),
		now: new(big.Rat), clock: new(big.Rat), level: new(big.Rat), charged: new(big.Rat),
	}
}

// NewKey adds a key of the given weight.
func (f *Fluid) NewKey(weight int64) *FluidKey {
	k := &FluidKey{
		weight: Instant(weight), named: Instant(weight), seat: Instant(weight), left: new(big.Rat), waiting: new(big.Rat),
		service: new(big.Rat), owed: new(big.Rat),
	}
	f.keys = append(f.keys, k)
	return k
}

// Arrive adds a call to a key at t. If it leaves at once, Leave follows at the same t.
func (f *Fluid) Arrive(t *big.Rat, k *FluidKey, cost int64, class int) *FluidCall {
	f.Advance(t)
	c := &FluidCall{Key: k, Cost: cost, Class: class, rank: t, seq: f.made}
	f.made++
	if f.Overtake != nil {
		c.rank = sum(t, times(f.Overtake, Instant(int64(class))))
	}
	f.change(k, func() {
		i, _ := slices.BinarySearchFunc(k.calls, c, func(a, b *FluidCall) int {
			if o := a.rank.Cmp(b.rank); o != 0 {
				return o
			}
			if a.Class != b.Class {
				return a.Class - b.Class
			}
			return a.seq - b.seq
		})
		k.calls = slices.Insert(k.calls, i, c)
		k.waiting = sum(k.waiting, Instant(cost))
	})
	return c
}

// Cancel takes a call out at t that does not leave: it was cancelled, refused or evicted.
func (f *Fluid) Cancel(t *big.Rat, c *FluidCall) {
	f.Advance(t)
	f.change(c.Key, func() { c.remove() })
}

// Block says that the key's own limits forbid its head from t on. What the fluid served
// ahead of the departures is lost to the key.
func (f *Fluid) Block(t *big.Rat, k *FluidKey) {
	f.Advance(t)
	k.blocked = true
	k.runDry()
}

// Unblock says that the key's own limits allow its head from t on.
func (f *Fluid) Unblock(t *big.Rat, k *FluidKey) {
	f.Advance(t)
	k.blocked = false
}

// SetWeight gives the key a weight at t, from the call after its head on.
func (f *Fluid) SetWeight(t *big.Rat, k *FluidKey, weight int64) {
	f.Advance(t)
	from := k.left
	if len(k.calls) > 0 && !k.blocked {
		from = sum(k.left, Instant(k.calls[0].Cost))
	}
	if n := len(k.later); n > 0 && k.later[n-1].from.Cmp(from) >= 0 {
		k.later = k.later[:n-1]
	}
	k.named = Instant(weight)
	if len(k.calls) == 0 || k.blocked {
		k.seat = k.named
	}
	k.later = append(k.later, reweighing{from, k.named})
	k.reweigh()
}

// SetInterval changes T at t. The bucket keeps its units.
func (f *Fluid) SetInterval(t, interval *big.Rat) {
	f.Advance(t)
	f.interval = interval
}

// Hold lets the fluid stand still from t until the given instant, and the clock that
// measures lateness with it. What the bucket held is lost.
func (f *Fluid) Hold(t, until *big.Rat) {
	f.Advance(t)
	f.openAt, f.reopened = latest(f.openAt, until), true
	f.tokens = new(big.Rat)
}

// Charge says at t that the key used units without asking. They count as a call of the
// key that left then. Those that the fluid has not served yet make no call late: the
// account was served ahead of every fair share by so much. That is an allowance and no
// bound: charges that no rule asked for can make calls later by more than it.
func (f *Fluid) Charge(t *big.Rat, k *FluidKey, cost int64) {
	f.Advance(t)
	units := Instant(cost)
	k.left, k.owed, f.charged = sum(k.left, units), sum(k.owed, units), sum(f.charged, units)
	for i := range k.later {
		k.later[i].from = sum(k.later[i].from, units)
	}
	k.settleOwed()
}

// Leave says that a call left at t. It returns by how many units of the account's service
// that was later than the fluid finished it; 0 if it was not later.
func (f *Fluid) Leave(t *big.Rat, c *FluidCall) *big.Rat {
	f.Advance(t)
	k := c.Key
	var late *big.Rat
	f.change(k, func() {
		k.left = sum(k.left, Instant(c.Cost))
		f.reopen(c.Cost)
		late = f.late(k)
		c.remove()
	})
	return late
}

// reopen lets the fluid catch up with the first call that leaves behind a hold: the account
// gave it units that it had not held back for the fluid.
func (f *Fluid) reopen(cost int64) {
	if !f.reopened {
		return
	}
	f.reopened = false
	behind := new(big.Rat)
	for _, k := range f.keys {
		behind.Add(behind, less(k.left, k.service))
	}
	if debt := less(Instant(cost), f.burst); debt.Sign() > 0 {
		behind.Sub(behind, debt) // what a cost above the burst owes
	}
	if behind.Sign() > 0 {
		f.tokens = earliest(f.burst, sum(f.tokens, behind))
	}
}

// late returns how late it is for the call of a key that left last.
func (f *Fluid) late(k *FluidKey) *big.Rat {
	finished, ok := k.reached(k.left)
	if !ok || k.floor != nil {
		return new(big.Rat)
	}
	if k.floorAt.clock != nil && k.floorAt.clock.Cmp(finished.clock) > 0 {
		finished = k.floorAt
	}
	late := less(f.clock, finished.clock)
	late.Sub(late, less(f.charged, finished.charges))
	return latest(late, new(big.Rat))
}

// change makes a change of the calls of a key, and sees whether its head went by it
// without leaving.
func (f *Fluid) change(k *FluidKey, by func()) {
	var before *FluidCall
	if len(k.calls) > 0 {
		before = k.calls[0]
	}
	left := k.left
	by()
	switch {
	case len(k.calls) == 0:
		k.runDry()
	case before == k.calls[0]:
	case before == nil || k.blocked || left != k.left:
		k.seat = k.named
	default:
		if rise := k.rise(sum(k.left, Instant(before.Cost))); rise.Sign() > 0 {
			floor := sum(f.level, rise)
			if k.floor == nil || k.floor.Cmp(floor) < 0 {
				k.floor = floor
			}
		}
		k.moveWeights(sum(k.left, Instant(before.Cost)), sum(k.left, Instant(k.calls[0].Cost)))
	}
	k.forgo()
	k.reweigh()
}

// runDry takes the head's place from the key: the next call is a newcomer's.
func (k *FluidKey) runDry() {
	k.floor, k.floorAt = nil, served{}
	for i := range k.later {
		k.later[i].from = earliest(k.later[i].from, k.left)
	}
	k.seat = k.named
	k.forgo()
	k.reweigh()
}

// moveWeights lets the weights that were to count behind a head count behind the one that
// has taken its place.
func (k *FluidKey) moveWeights(from, to *big.Rat) {
	if k.service.Cmp(k.left) >= 0 {
		if k.seat.Cmp(k.named) != 0 {
			k.weight, k.later = k.seat, []reweighing{{to, k.named}}
		}
		return
	}
	for i := range k.later {
		if k.later[i].from.Cmp(from) == 0 {
			k.later[i].from = to
		}
	}
}

// rise returns by how much the level rises until the service of the key is this much.
func (k *FluidKey) rise(service *big.Rat) *big.Rat {
	all, at, weight := new(big.Rat), k.service, k.weight
	for _, l := range k.later {
		if l.from.Cmp(service) >= 0 {
			break
		}
		if l.from.Cmp(at) > 0 {
			all = sum(all, over(less(l.from, at), weight))
			at = l.from
		}
		weight = l.weight
	}
	return sum(all, over(less(service, at), weight))
}

// forgo ends the claim of a key to service that none of its calls is there for.
func (k *FluidKey) forgo() {
	total := k.total()
	if k.service.Cmp(total) <= 0 {
		return
	}
	k.service = total
	for n := len(k.curve); n > 0 && k.curve[n-1].service.Cmp(total) > 0; n-- {
		if n > 1 && k.curve[n-2].service.Cmp(total) < 0 {
			k.curve[n-1], _ = k.reached(total)
			break
		}
		k.curve = k.curve[:n-1]
	}
}

// total returns all units of a key that the fluid may have served by now.
func (k *FluidKey) total() *big.Rat {
	if k.blocked {
		return k.left
	}
	return sum(k.left, k.waiting)
}

// reached returns when the service of the key came to this much.
func (k *FluidKey) reached(service *big.Rat) (served, bool) {
	i, _ := slices.BinarySearchFunc(k.curve, service, func(p served, s *big.Rat) int { return p.service.Cmp(s) })
	switch {
	case i == len(k.curve):
		return served{}, false
	case i == 0 || k.curve[i].service.Cmp(service) == 0:
		return k.curve[i], true
	}
	a, b := k.curve[i-1], k.curve[i]
	part := over(less(service, a.service), less(b.service, a.service))
	return served{
		clock:   sum(a.clock, times(part, less(b.clock, a.clock))),
		service: service,
		charges: a.charges,
	}, true
}

func (k *FluidKey) reweigh() {
	for len(k.later) > 0 && k.service.Cmp(k.later[0].from) >= 0 {
		k.weight, k.later = k.later[0].weight, k.later[1:]
	}
}

func (k *FluidKey) settleOwed() {
	k.owed = earliest(k.owed, latest(new(big.Rat), less(k.left, k.service)))
}

func (c *FluidCall) remove() {
	k := c.Key
	i := slices.Index(k.calls, c)
	k.calls = slices.Delete(k.calls, i, i+1)
	k.waiting = less(k.waiting, Instant(c.Cost))
}

// Advance lets the fluid run until t.
func (f *Fluid) Advance(t *big.Rat) {
	if f.now.Cmp(f.openAt) < 0 {
		f.now = latest(f.now, earliest(t, f.openAt))
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

func sum(a, b *big.Rat) *big.Rat   { return new(big.Rat).Add(a, b) }
func less(a, b *big.Rat) *big.Rat  { return new(big.Rat).Sub(a, b) }
func times(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) }
func over(a, b *big.Rat) *big.Rat  { return new(big.Rat).Quo(a, b) }

func earliest(a, b *big.Rat) *big.Rat {
	if b.Cmp(a) < 0 {
		return b
	}
	return a
}
