package precise

import (
	"container/heap"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/trial"
)

// Whatever is pushed, moved and removed, each Alarm knows its place and the earliest
// comes out first.
func TestHeap(t *testing.T) { trial.Run(t, 3, heapKeepsOrder) }

func heapKeepsOrder(t *testing.T, rnd *rand.Rand) {
	var h alarms
	in := map[*Alarm]bool{}
	for range 1000 {
		switch a := anyOf(rnd, h); {
		case a == nil || rnd.IntN(3) == 0:
			a = &Alarm{at: rnd.Int64N(100), place: nowhere}
			heap.Push(&h, a)
			in[a] = true
		case rnd.IntN(2) == 0:
			a.at = rnd.Int64N(100)
			heap.Fix(&h, a.place)
		default:
			heap.Remove(&h, a.place)
			require.Equal(t, nowhere, a.place)
			delete(in, a)
		}
		require.Len(t, h, len(in))
		for place, a := range h {
			require.Equal(t, place, a.place)
			require.True(t, in[a])
		}
	}
	last := int64(-1)
	for len(h) > 0 {
		a := heap.Pop(&h).(*Alarm)
		require.GreaterOrEqual(t, a.at, last)
		require.Equal(t, nowhere, a.place)
		last = a.at
	}
}

func anyOf(rnd *rand.Rand, h alarms) *Alarm {
	if len(h) == 0 {
		return nil
	}
	return h[rnd.IntN(len(h))]
}
