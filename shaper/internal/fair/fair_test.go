package fair_test

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/oracle/discipline"
	"github.com/sluice-go/sluice/internal/trial"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper/internal/fair"
)

// TestFluid holds a Sharing to the promise: no call leaves later than the largest cost after
// its fluid finish.
func TestFluid(t *testing.T) {
	worst := 0.0
	trial.Run(t, 100, func(t *testing.T, rng *rand.Rand) {
		s := discipline.NewScript(rng)
		late := s.Play(newRule)
		worst = max(worst, late)
		require.LessOrEqual(t, late, discipline.Largest+0.01, "%+v", s)
	})
	t.Logf("at worst %.2f units late", worst)
}

// A rule has a Sharing be the rule of a simulated line, in which T is a second.
type rule struct {
	*fair.Sharing[discipline.Key]
	now   time.Duration
	flows []*flow
	order uint64
	seq   map[*discipline.Call]uint64
}

type flow struct {
	tags   fair.Flow[discipline.Key]
	key    *discipline.Key
	weight int64
	joined bool
}

func newRule(l *discipline.Line) discipline.Rule {
	r := &rule{Sharing: fair.New[discipline.Key](l.Burst), seq: map[*discipline.Call]uint64{}}
	r.SetRate(scheduler.PerSecond(1))
	for _, k := range l.Keys {
		r.flows = append(r.flows, &flow{tags: fair.Flow[discipline.Key]{Owner: k}, key: k, weight: k.Weight})
	}
	return r
}

func (f *flow) units() (n int64) {
	for _, c := range f.key.Calls {
		n += c.Cost
	}
	return n
}

func (r *rule) of(k *discipline.Key) *flow { return r.flows[k.ID] }

func (r *rule) Elapsed(units *big.Rat) { r.Advance(r.after(units)) }

func (r *rule) Stood(units *big.Rat) { r.Stand(r.after(units)) }

func (r *rule) after(units *big.Rat) time.Duration {
	ns := new(big.Rat).Mul(units, big.NewRat(int64(time.Second), 1))
	r.now += time.Duration(ns.Num().Int64())
	return r.now
}

func (r *rule) join(f *flow) {
	c := f.key.Head()
	f.joined = true
	r.Sharing.Join(&f.tags, c.Cost, f.units(), f.weight, r.seq[c])
}

func (r *rule) Joined(c *discipline.Call) {
	f := r.of(c.Key)
	r.order++
	r.seq[c] = r.order
	switch {
	case !f.key.Free():
	case !f.joined:
		r.join(f)
	case f.key.Head() == c:
		r.Replace(&f.tags, c.Cost, f.units(), r.seq[c])
	default:
		r.Grow(&f.tags, c.Cost)
	}
}

func (r *rule) Gone(c *discipline.Call, wasHead bool) {
	f := r.of(c.Key)
	switch {
	case !f.joined:
	case len(f.key.Calls) == 0:
		r.dry(f, false)
	case wasHead:
		head := f.key.Head()
		r.Replace(&f.tags, head.Cost, f.units(), r.seq[head])
	default:
		r.Shrink(&f.tags, c.Cost)
	}
}

func (r *rule) dry(f *flow, left bool) {
	f.joined = false
	r.Dry(&f.tags, left)
}

func (r *rule) Left(c *discipline.Call) {
	f := r.of(c.Key)
	r.Sharing.Left(&f.tags)
	if next := f.key.Head(); next != nil {
		r.Succeed(&f.tags, next.Cost, r.seq[next])
	} else {
		r.dry(f, true)
	}
}

func (r *rule) Charged(k *discipline.Key, units int64) { r.Charge(&r.of(k).tags, units, k.Weight) }

func (r *rule) Refunded(k *discipline.Key, units *big.Rat) {
	parts := new(big.Rat).Mul(units, big.NewRat(fair.Parts, 1))
	r.Refund(&r.of(k).tags, parts.Num().Int64())
}

func (r *rule) Blocked(k *discipline.Key) {
	if f := r.of(k); f.joined {
		r.dry(f, false)
	}
}

func (r *rule) Unblocked(k *discipline.Key) {
	if f := r.of(k); k.Free() {
		r.join(f)
	}
}

func (r *rule) Reweighed(k *discipline.Key) {
	f := r.of(k)
	f.weight = k.Weight
	r.Reweigh(&f.tags, f.weight)
}

func (r *rule) Next() *discipline.Key {
	if f := r.First(); f != nil {
		return f.Owner
	}
	return nil
}
