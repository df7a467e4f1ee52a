package fair

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/trial"
	"github.com/sluice-go/sluice/scheduler"
)

// When tags are counted anew, all stands to all as before: anchors, floors and spans, too.
func TestTagsCountedAnew(t *testing.T) {
	trial.Run(t, 200, func(t *testing.T, rng *rand.Rand) {
		seed := rng.Uint64()
		assert.Equal(t, someEvents(seed, false), someEvents(seed, true))
	})
}

// someEvents returns who was next, and the tags from V on, after each of some events.
func someEvents(seed uint64, anew bool) (all []string) {
	rng := rand.New(rand.NewPCG(seed, 0))
	s := New[int](4)
	s.SetRate(scheduler.PerSecond(1))
	var flows [4]Flow[int]
	weight := func() int64 { return 1 + rng.Int64N(9) }
	now := time.Duration(0)
	for seq := range uint64(150) {
		now += time.Duration(rng.Int64N(int64(3 * time.Second)))
		s.Advance(now)
		if anew {
			s.rebase()
		}
		f, cost, w := &flows[rng.IntN(len(flows))], 1+rng.Int64N(5), weight()
		switch what := rng.IntN(9); {
		case !f.waits && what == 0, f.waits && what < 2:
			s.Charge(f, cost, w)
		case !f.waits:
			s.Join(f, cost, cost, w, seq)
		case what < 5:
			s.Grow(f, cost)
		case what == 5:
			s.Replace(f, cost, f.units+cost, seq)
		case what == 6:
			s.Reweigh(f, w)
		case what == 7:
			s.Dry(f, false)
		}
		for f := s.First(); f != nil && s.owed < s.burst; f = s.First() {
			s.Left(f)
			if f.units > 0 {
				s.Succeed(f, min(f.units, 2), seq)
			} else {
				s.Dry(f, true)
			}
		}
		for i := range flows {
			if f := &flows[i]; f.waits || f.inSum > 0 {
				all = append(all, fmt.Sprint(i, f.start.v-s.v, f.last.v-s.v, f.units))
			}
			if f := &flows[i]; f.waits {
				all = append(all, fmt.Sprint("F ", f.finish-s.v, s.First() == f))
			}
		}
	}
	return all
}

// What tags are rounded by does not add up: after a million calls of weights that divide no cost,
// a newcomer finds no fluid that is behind.
func TestRoundingDoesNotAddUp(t *testing.T) {
	s := New[int](1)
	s.SetRate(scheduler.PerSecond(1_000))
	weights := []int64{1<<20 - 1, 1<<19 + 3, 999_983}
	flows := make([]Flow[int], len(weights))
	for i := range flows {
		s.Join(&flows[i], 1, 1<<40, weights[i], uint64(i))
	}
	var left [3]int64
	now := time.Duration(0)
	for n := range uint64(1_000_000) {
		s.Advance(now)
		now += time.Millisecond
		f := s.First()
		for i := range flows {
			if f == &flows[i] {
				left[i]++
			}
		}
		s.Left(f)
		s.Succeed(f, 1, n+10)
	}
	assert.InDelta(t, 0, float64(s.ahead()+s.tokens+s.pending+s.owed-s.burst)/unit, 0.02, "what the fluid has served is what has left")
	all := weights[0] + weights[1] + weights[2]
	for i, n := range left {
		assert.InDelta(t, float64(weights[i])/float64(all)*1_000_000, n, 1)
	}
}

// A flow whose weight changes with each call while the fluid is behind needs bounded memory, and
// counts for as much.
func TestSpansAreBounded(t *testing.T) {
	var p *spans
	area, at := 0.0, int64(0)
	sum := func() (sum float64) {
		from := int64(0)
		for _, b := range p.all() {
			sum += float64(b.until-from) * float64(b.weight)
			from = b.until
		}
		return sum
	}
	for i := range int64(1000) {
		d, weight := 1+i*7919%1_000_003, 1+i*31%977
		at += d
		area += float64(d) * float64(weight)
		p = p.add(span{at, weight})
		require.LessOrEqual(t, p.n, mostSpans)
		require.Equal(t, area, sum())
		require.Equal(t, at, p.all()[p.n-1].until)
	}
}
