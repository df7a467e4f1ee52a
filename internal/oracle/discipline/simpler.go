package discipline

import (
	"math/big"
	"slices"
)

// nothing is a rule that takes no notice of events.
type nothing struct{ line *Line }

func (nothing) Elapsed(*big.Rat)        {}
func (nothing) Stood(*big.Rat)          {}
func (nothing) Reopened(int64)          {}
func (nothing) Joined(*Call)            {}
func (nothing) Gone(*Call, bool)        {}
func (nothing) Left(*Call)              {}
func (nothing) Charged(*Key, int64)     {}
func (nothing) Refunded(*Key, *big.Rat) {}
func (nothing) Blocked(*Key)            {}
func (nothing) Unblocked(*Key)          {}
func (nothing) Reweighed(*Key)          {}

// FIFO serves the free head that arrived first.
type FIFO struct{ nothing }

// NewFIFO returns the rule for a line.
func NewFIFO(l *Line) Rule { return &FIFO{nothing{l}} }

// Next returns the key that goes next.
func (r *FIFO) Next() *Key {
	var best *Key
	for _, k := range r.line.Keys {
		if k.Free() && (best == nil || before(k.Head(), best.Head()) < 0) {
			best = k
		}
	}
	return best
}

// SFQ is start-time fair queueing: the least S goes, and V is the S of what left last.
type SFQ struct {
	nothing
	v      *big.Rat
	starts []*big.Rat // of the heads
	chains []*big.Rat
}

// NewSFQ returns the rule for a line.
func NewSFQ(l *Line) Rule {
	r := &SFQ{nothing: nothing{l}, v: new(big.Rat)}
	for range l.Keys {
		r.starts, r.chains = append(r.starts, nil), append(r.chains, new(big.Rat))
	}
	return r
}

// Next returns the key that goes next.
func (r *SFQ) Next() *Key {
	var best *Key
	for _, k := range r.line.Keys {
		if !k.Free() {
			r.starts[k.ID] = nil
			continue
		}
		if r.starts[k.ID] == nil {
			r.starts[k.ID] = r.v
			if r.v.Cmp(r.chains[k.ID]) < 0 {
				r.starts[k.ID] = r.chains[k.ID]
			}
		}
		if best == nil || r.starts[k.ID].Cmp(r.starts[best.ID]) < 0 {
			best = k
		}
	}
	return best
}

// Left is told of a departure.
func (r *SFQ) Left(c *Call) {
	k := c.Key
	if r.starts[k.ID].Cmp(r.v) > 0 {
		r.v = r.starts[k.ID]
	}
	r.chains[k.ID] = new(big.Rat).Add(r.starts[k.ID], big.NewRat(c.Cost, k.Weight))
	r.starts[k.ID] = nil
}

// DRR is deficit round robin with the largest cost times the weight as the quantum.
type DRR struct {
	nothing
	quantum int64
	ring    []*Key
	deficit map[*Key]int64
}

// NewDRR returns the rule for a line of calls up to a cost.
func NewDRR(largest int64) func(*Line) Rule {
	return func(l *Line) Rule {
		return &DRR{nothing: nothing{l}, quantum: largest, deficit: map[*Key]int64{}}
	}
}

// Next returns the key that goes next.
func (r *DRR) Next() *Key {
	for _, k := range r.line.Keys {
		if k.Free() && !slices.Contains(r.ring, k) {
			r.ring = append(r.ring, k)
			r.deficit[k] = 0
		}
	}
	r.ring = slices.DeleteFunc(r.ring, func(k *Key) bool { return !k.Free() })
	for len(r.ring) > 0 {
		k := r.ring[0]
		if r.deficit[k] == 0 {
			r.deficit[k] = r.quantum * k.Weight
		}
		if k.Head().Cost <= r.deficit[k] {
			return k
		}
		r.deficit[k] += r.quantum * k.Weight
		r.ring = append(r.ring[1:], k)
	}
	return nil
}

// Left is told of a departure.
func (r *DRR) Left(c *Call) {
	k := c.Key
	r.deficit[k] -= c.Cost
	if r.deficit[k] <= 0 || len(k.Calls) == 0 || k.Head().Cost > r.deficit[k] {
		r.deficit[k] = max(0, r.deficit[k])
		if i := slices.Index(r.ring, k); i >= 0 {
			r.ring = append(slices.Delete(r.ring, i, i+1), k)
			r.deficit[k] += r.quantum * k.Weight
		}
	}
}
