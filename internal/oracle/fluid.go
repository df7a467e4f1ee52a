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

	interval   *big.Rat // T
	burst      *big.Rat
	tokens     *big.Rat // what the bucket holds
	openAt     *big.Rat // the account is held until then
	reopened   bool     // nothing has left since a hold
	unpaid     *big.Rat // what has left and time has not paid: the account's bucket holds burst less that
	unpaidThen *big.Rat // when the account opened
	lost       *big.Rat // what a hold has kept from the fluid, and not from the account
	now        *big.Rat
	clock      *big.Rat // units that the account could have served by now, one in T, but for the burst
	level      *big.Rat // units served for each unit of weight
	charged    *big.Rat // units of charges so far
	keys       []*FluidKey
	made       int
}

// NewFluid returns a fluid at instant 0 whose bucket is full.
func NewFluid(interval *big.Rat, burst int64) *Fluid {
	return &Fluid{
		interval: interval, burst: Instant(burst), tokens: Instant(burst), openAt: new(big.Rat),
		unpaid: new(big.Rat), unpaidThen: new(big.Rat), lost: new(big.Rat),
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

// Unblock says that the own limits of these keys allow their heads from t on.
func (f *Fluid) Unblock(t *big.Rat, keys ...*FluidKey) {
	f.Advance(t)
	for _, k := range keys {
		k.blocked = false
	}
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
// measures lateness with it. What the account gains or loses by the hold is told when the
// next call leaves: then the fluid gains or loses as much.
func (f *Fluid) Hold(t, until *big.Rat) {
	f.Advance(t)
	f.openAt, f.reopened, f.unpaidThen = latest(f.openAt, until), true, f.unpaid
	f.lost, f.tokens = sum(f.lost, f.tokens), new(big.Rat)
}

// Charge says at t that the key used units without asking. They count as a call of the
// key that left then. Those that the fluid has not served yet make no call late: the
// account was served ahead of every fair share by so much. That is an allowance and no
// bound: charges that no rule asked for can make calls later by more than it.
func (f *Fluid) Charge(t *big.Rat, k *FluidKey, cost int64) {
	f.Advance(t)
	f.depart(cost)
	units, before := Instant(cost), k.left
	k.left, k.owed, f.charged = sum(k.left, units), sum(k.owed, units), sum(f.charged, units)
	for i := range k.later {
		if k.later[i].from.Cmp(before) > 0 {
			k.later[i].from = sum(k.later[i].from, units)
		}
	}
	if k.floor != nil {
		k.floor = sum(k.floor, over(units, k.seat)) // the head that went would have been after it, too
	}
	if len(k.calls) > 0 && !k.blocked && k.service.Cmp(before) >= 0 {
		// What was served of the calls is of the charge now.
		k.weight, k.later = k.seat, []reweighing{{sum(k.left, Instant(k.calls[0].Cost)), k.named}}
		k.reweigh()
	}
	k.settleOwed()
}

// Refund says at t that so many units of what left of the key did not. Those that the fluid has
// not served yet it never will. What the account gets back beyond that it has served to the calls
// of the key that wait, but no more than it was behind by. What is more it may serve at once to
// all, and it is behind by what the account cannot catch up.
func (f *Fluid) Refund(t *big.Rat, k *FluidKey, units *big.Rat) {
	f.Advance(t)
	back := earliest(units, f.unpaid)
	f.unpaid = less(f.unpaid, back)
	f.unpaidThen = latest(less(f.unpaidThen, units), new(big.Rat))
	undone := earliest(units, latest(new(big.Rat), less(k.left, k.service)))
	gain := less(back, undone)
	before := k.left
	k.left = less(k.left, undone)
	level := k.rise(before)
	for i := range k.later {
		if k.later[i].from.Cmp(before) >= 0 {
			k.later[i].from = less(k.later[i].from, undone)
		} else {
			k.later[i].from = earliest(k.later[i].from, k.left)
		}
	}
	if k.floor != nil && undone.Sign() > 0 {
		k.floor = sum(less(k.floor, level), k.rise(k.left))
	}
	if !k.blocked && gain.Sign() > 0 {
		if credit := earliest(earliest(gain, undone), less(k.total(), k.service)); credit.Sign() > 0 {
			charges := less(f.charged, f.owed())
			k.curve = append(k.curve, served{f.clock, k.service, charges})
			k.service = sum(k.service, credit)
			k.curve = append(k.curve, served{f.clock, k.service, charges})
			gain = less(gain, credit)
		}
	}
	if f.now.Cmp(f.openAt) < 0 {
		f.lost = sum(f.lost, gain)
	} else {
		f.tokens = sum(f.tokens, gain)
	}
	k.settleOwed()
	k.forgo()
	k.reweigh()
}

// Leave says that a call left at t. It returns by how many units of the account's service
// that was later than the fluid finished it; 0 if it was not later.
func (f *Fluid) Leave(t *big.Rat, c *FluidCall) *big.Rat {
	f.Advance(t)
	k := c.Key
	var late *big.Rat
	f.change(k, func() {
		f.depart(c.Cost)
		k.left = sum(k.left, Instant(c.Cost))
		late = f.late(k)
		c.remove()
	})
	return late
}

// depart is for units that leave: the account owes them. The first behind a hold find a
// bucket that held no more than they need when the account opened.
func (f *Fluid) depart(cost int64) {
	if f.reopened && f.now.Cmp(f.openAt) >= 0 {
		f.reopened = false
		bound := less(f.burst, earliest(f.burst, Instant(cost)))
		forfeited := latest(new(big.Rat), less(bound, f.unpaidThen))
		f.tokens = sum(f.tokens, less(f.lost, forfeited)) // below 0: it was served what is taken back
		f.lost = new(big.Rat)
		f.unpaid = latest(f.unpaid, less(bound, over(less(f.now, f.openAt), f.interval)))
		most := less(f.burst, f.unpaid) // the fluid is never ahead of the account
		for _, k := range f.keys {
			most.Add(most, less(k.left, k.service))
		}
		f.tokens = earliest(f.tokens, most)
	}
	f.unpaid = sum(f.unpaid, Instant(cost))
}

// pay lets time until t pay for what has left. It returns how much that was.
func (f *Fluid) pay(t *big.Rat) *big.Rat {
	paid := earliest(f.unpaid, latest(new(big.Rat), over(less(t, f.now), f.interval)))
	f.unpaid = less(f.unpaid, paid)
	return paid
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
