package schedulertest

import (
	"math/rand/v2"
	"testing"

	"github.com/sluice-go/sluice/scheduler"
)

// Two that are as good as new go on alike, one of which is new.
func (c Config) freshMeansFresh(t testing.TB) {
	c.histories(func(rng *rand.Rand, old, _ history) {
		at, ok := old.s.(scheduler.Forgettable).FreshAt()
		if !ok {
			return
		}
		if at.Before(old.now) {
			at = old.now
		}
		if rng.IntN(2) == 0 {
			at = at.Add(c.gap(rng))
		}
		old.now = at
		fresh := history{s: c.New(), now: at}
		for range 20 {
			ahead, n := rng.Int64N(10), c.cost(rng, old.s)
			got, want := old.s.Next(old.now, ahead, n), fresh.s.Next(fresh.now, ahead, n)
			if !got.Equal(want) {
				t.Errorf("%v after FreshAt, Next(t, %d, %d) is %v, and %v of a fresh one", old.now.Sub(at), ahead, n, got, want)
				return
			}
			old.leave(n)
			fresh.leave(n)
			pause := c.gap(rng)
			old.now, fresh.now = old.now.Add(pause), fresh.now.Add(pause)
		}
	})
}
