package oracle

import (
	"math/big"
	"slices"
)

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
