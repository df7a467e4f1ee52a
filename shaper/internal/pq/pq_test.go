package pq_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/trial"
	"github.com/sluice-go/sluice/shaper/internal/pq"
)

type item struct {
	rank, tie int
	at        int32
}

// Whatever is put, moved, shifted and taken out, what goes first has the least rank of all.
func TestFirst(t *testing.T) {
	trial.Run(t, 200, func(t *testing.T, rng *rand.Rand) {
		q := pq.New(func(a, b *item) bool { return a.tie < b.tie }, func(x *item) *int32 { return &x.at })
		all := make([]item, 1+rng.IntN(40))
		var in []*item
		shifted := 0
		for range 300 {
			if rng.IntN(20) == 0 {
				shifted += 3
				q.Shift(-3)
			}
			x := &all[rng.IntN(len(all))]
			in = slices.DeleteFunc(in, func(y *item) bool { return x == y })
			if rng.IntN(3) == 0 {
				q.Remove(x)
				require.Zero(t, x.at)
			} else {
				x.rank, x.tie = rng.IntN(10), rng.IntN(10)
				q.Put(x, int64(x.rank-shifted))
				in = append(in, x)
			}
			require.ElementsMatch(t, in, slices.Collect(q.Each))
			if len(in) == 0 {
				require.Nil(t, q.First())
				continue
			}
			least := slices.MinFunc(in, func(a, b *item) int { return cmp.Or(a.rank-b.rank, a.tie-b.tie) })
			first := q.First()
			require.Equal(t, [2]int{least.rank, least.tie}, [2]int{first.rank, first.tie})
		}
	})
}
