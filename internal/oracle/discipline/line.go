// Package discipline simulates a line in front of one account with any rule for who is
// next, and measures it against the ideal fluid of package oracle. It shows which rules
// keep the promise that no call leaves later than the largest cost after its fluid finish.
package discipline

import (
	"math/big"
	"slices"

	"github.com/sluice-go/sluice/internal/oracle"
)

// A Call is one that waits.
type Call struct {
	Key   *Key
	Cost  int64
	Class int

	At    int64 // when it arrived
	rank  int64
	seq   int
	fluid *oracle.FluidCall
}

// A Key is one of those that share the line.
type Key struct {
	ID      int
	Weight  int64
	Calls   []*Call // in the order of leaving
	Blocked bool

	fluid *oracle.FluidKey
}

// Free reports whether the key has a head that its own limits allow.
func (k *Key) Free() bool { return len(k.Calls) > 0 && !k.Blocked }

// Head returns the key's first call, nil if it has none.
func (k *Key) Head() *Call {
	if len(k.Calls) == 0 {
		return nil
	}
	return k.Calls[0]
}

// A Rule says who is next. It is told every event after it has come, and before it how
// many units came into the account since the event before.
type Rule interface {
	Elapsed(units *big.Rat)
	Stood(units *big.Rat) // the account is held, and so many units would have come
	Reopened(cost int64)  // a call of this cost is the first to leave after a hold
	Joined(c *Call)
	Gone(c *Call, wasHead bool) // c went without leaving
	Left(c *Call)
	Charged(k *Key, units int64)
	Refunded(k *Key, units *big.Rat) // so many of what left did not
	Blocked(k *Key)
	Unblocked(k *Key)
	Reweighed(k *Key)
	Next() *Key // nil if no key is free
}

// tick is how many instants there are in one T.
const tick = 4

// Line is a simulated account with its keys. It counts instants; T is tick of them.
type Line struct {
	Keys     []*Key
	Burst    int64
	Overtake int64
	Rule     Rule
	Fluid    *oracle.Fluid
	Worst    *big.Rat // by how many units a call left late
	Open     []Departed

	now, tat, openAt int64
	synced           int64
	reopening        bool
	seq              int
	departed         func(k *Key) // a key's own limits may forbid its next call
	raises           []raise      // all that has raised TAT
}

// NewLine returns an empty line of keys with these weights at instant 0.
func NewLine(weights []int64, burst, overtake int64, rule func(*Line) Rule) *Line {
	l := &Line{Burst: burst, Overtake: overtake, Worst: new(big.Rat), departed: func(*Key) {}}
	l.Fluid = oracle.NewFluid(oracle.Instant(tick), burst)
	l.Fluid.Overtake = oracle.Instant(overtake)
	for i, w := range weights {
		l.Keys = append(l.Keys, &Key{ID: i, Weight: w, fluid: l.Fluid.NewKey(w)})
	}
	l.Rule = rule(l)
	return l
}

func (l *Line) at() *big.Rat { return oracle.Instant(l.now) }

func (l *Line) sync() {
	if until := min(l.now, l.openAt); until > l.synced {
		l.Rule.Stood(big.NewRat(until-l.synced, tick))
		l.synced = until
	}
	l.Rule.Elapsed(big.NewRat(l.now-l.synced, tick))
	l.synced = l.now
}

// Advance lets calls leave until the given instant, each when it is due.
func (l *Line) Advance(t int64) {
	for {
		l.pass()
		due := t
		if k := l.Rule.Next(); k != nil {
			due = min(t, l.due(k.Head()))
		}
		if due == t && l.now == t {
			return
		}
		l.now = max(l.now, due)
		l.sync()
	}
}

func (l *Line) due(c *Call) int64 {
	return max(l.now, l.openAt, l.tat-(l.Burst-min(c.Cost, l.Burst))*tick)
}

// pass lets the calls leave that are due now.
func (l *Line) pass() {
	for {
		k := l.Rule.Next()
		if k == nil || l.due(k.Head()) > l.now {
			return
		}
		l.leave(k.Head())
	}
}

func (l *Line) leave(c *Call) {
	l.sync()
	l.depart(c.Cost)
	l.Open = append(l.Open, Departed{c.Key, c.Cost, len(l.raises) - 1})
	c.drop()
	l.Rule.Left(c)
	if late := l.Fluid.Leave(l.at(), c.fluid); late.Cmp(l.Worst) > 0 {
		l.Worst = late
	}
	l.departed(c.Key)
	l.sync()
}

func (l *Line) depart(cost int64) {
	if l.reopening && l.now >= l.openAt {
		l.reopening = false
		l.raise(l.openAt+(l.Burst-min(cost, l.Burst))*tick, 0)
		l.Rule.Reopened(cost)
	}
	l.raise(l.now, cost)
}

// A raise puts TAT to no less than at, and then adds a cost.
type raise struct{ at, cost int64 }

func (l *Line) raise(at, cost int64) {
	l.raises = append(l.raises, raise{at, cost})
	l.tat = max(l.tat, at) + cost*tick
}

// Settle says that a departure, which was one of the latest, has cost less. TAT is what it would
// be if that had been known.
func (l *Line) Settle(d Departed, actual int64) {
	l.sync()
	before := l.tat
	l.raises[d.raise].cost, l.tat = actual, 0
	for _, r := range l.raises {
		l.tat = max(l.tat, r.at) + r.cost*tick
	}
	back := big.NewRat(before-l.tat, tick)
	l.Fluid.Refund(l.at(), d.Key.fluid, back)
	l.Rule.Refunded(d.Key, back)
	if l.now < l.openAt {
		l.Rule.Stood(new(big.Rat))
	}
	l.sync()
	l.pass()
}

// Departed is a call that has left and may be settled.
type Departed struct {
	Key   *Key
	Cost  int64
	raise int
}

// Join adds a call now.
func (l *Line) Join(k *Key, cost int64, class int) {
	l.sync()
	c := &Call{Key: k, Cost: cost, Class: class, At: l.now, rank: l.now + l.Overtake*int64(class), seq: l.seq}
	l.seq++
	i, _ := slices.BinarySearchFunc(k.Calls, c, before)
	k.Calls = slices.Insert(k.Calls, i, c)
	c.fluid = l.Fluid.Arrive(l.at(), k.fluid, cost, class)
	l.Rule.Joined(c)
	l.pass()
}

// before orders the calls of one key.
func before(a, b *Call) int {
	if a.rank != b.rank {
		return int(a.rank - b.rank)
	}
	if a.Class != b.Class {
		return a.Class - b.Class
	}
	return a.seq - b.seq
}

// Cancel takes a call out that does not leave.
func (l *Line) Cancel(c *Call) {
	l.sync()
	wasHead := c.Key.Head() == c
	c.drop()
	l.Fluid.Cancel(l.at(), c.fluid)
	l.Rule.Gone(c, wasHead)
	l.pass()
}

// Charge counts units that a key used without asking.
func (l *Line) Charge(k *Key, units int64) {
	l.sync()
	l.depart(units)
	l.Fluid.Charge(l.at(), k.fluid, units)
	l.Rule.Charged(k, units)
	l.sync()
}

// Block and Unblock say what the key's own limits do.
func (l *Line) Block(k *Key) {
	if k.Blocked {
		return
	}
	l.sync()
	k.Blocked = true
	l.Fluid.Block(l.at(), k.fluid)
	l.Rule.Blocked(k)
	l.pass()
}

// Unblock lets a key take part again.
func (l *Line) Unblock(k *Key) {
	if !k.Blocked {
		return
	}
	l.sync()
	k.Blocked = false
	l.Fluid.Unblock(l.at(), k.fluid)
	l.Rule.Unblocked(k)
	l.pass()
}

// Reweigh gives a key a new weight.
func (l *Line) Reweigh(k *Key, weight int64) {
	l.sync()
	k.Weight = weight
	l.Fluid.SetWeight(l.at(), k.fluid, weight)
	l.Rule.Reweighed(k)
	l.pass()
}

// Hold lets nothing leave until the given instant.
func (l *Line) Hold(until int64) {
	l.sync()
	l.openAt, l.reopening = max(l.openAt, until), true
	l.Rule.Stood(new(big.Rat))
	l.Fluid.Hold(l.at(), oracle.Instant(l.openAt))
}

func (c *Call) drop() {
	i := slices.Index(c.Key.Calls, c)
	c.Key.Calls = slices.Delete(c.Key.Calls, i, i+1)
}
