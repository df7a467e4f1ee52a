package shaper_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// tariff is a function for rates that can come to say something else.
type tariff struct{ units atomic.Int64 }

func newTariff(units int64) *tariff {
	p := &tariff{}
	p.units.Store(units)
	return p
}

func (p *tariff) rate(string) scheduler.Rate { return scheduler.PerSecond(p.units.Load()) }

func TestKeyWhoseFunctionCameToSayTheSameIsForgotten(t *testing.T) {
	for name, changed := range map[string]func(*shaper.Group[string], *tariff){
		"the function first": func(g *shaper.Group[string], p *tariff) {
			p.units.Store(4)
			_ = g.SetRate("a", scheduler.PerSecond(4))
		},
		"the function last": func(g *shaper.Group[string], p *tariff) {
			_ = g.SetRate("a", scheduler.PerSecond(4))
			p.units.Store(4)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newTariff(2)
				g := newGroup[string](t, scheduler.PerSecond(1), shaper.WithRates(p.rate), shaper.WithMaxKeys(1))
				require.True(t, g.Allow("a"))
				changed(g, p)
				pass(time.Minute)
				assert.True(t, g.Allow("b"), "there is room: a owes nothing, and a new key has its rate")
				pass(time.Minute)
				assert.Zero(t, g.Len())

				require.NoError(t, g.SetRate("c", scheduler.PerSecond(9)))
				pass(time.Minute)
				assert.Equal(t, 1, g.Len(), "a rate of its own is remembered")
				require.NoError(t, g.Refresh("c"))
				assert.Zero(t, g.Len())
			})
		})
	}
}

func TestRefreshReachesWaitingCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTariff(1)
		g := newGroup[string](t, scheduler.PerSecond(100), shaper.WithRates(p.rate))
		r := newRecorder()
		for range 4 {
			r.submit(func() error { return g.Wait(t.Context(), "a") })
		}
		r.until(500 * ms)
		p.units.Store(10)
		pass(0)
		require.NoError(t, g.Refresh("never seen"))
		require.NoError(t, g.Refresh("a")) // half a unit is owed: 50 ms
		pass(time.Minute)
		assert.Equal(t, []time.Duration{0, 550 * ms, 650 * ms, 750 * ms}, r.left())
		assert.Zero(t, g.Len())

		p.units.Store(0)
		require.True(t, g.Len() == 0)
		err := g.Refresh("a")
		assert.ErrorContains(t, err, "0/s")
	})
}

// Idle keys, keys with waiting calls and keys to come have the new rates at once.
func TestSetRatesReachesAllKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup[int](t, scheduler.PerSecond(1), shaper.WithQueue(10))
		require.Error(t, g.SetRates(nil))
		r := newRecorder()
		for key := range 200 {
			require.True(t, g.Allow(key))
		}
		for range 2 {
			r.submit(func() error { return g.Wait(t.Context(), 7) })
		}
		r.until(500 * ms)
		require.NoError(t, g.SetRates(func(key int) scheduler.Rate { return scheduler.PerSecond(int64(10 * (1 + key%2))) }))
		for key := range 200 {
			want := 50 * ms / time.Duration(1+key%2) // half a unit is owed
			if key == 7 {
				want = 125 * ms // two wait
			}
			require.Equal(t, want, g.Delay(key), "key %d", key)
		}
		assert.True(t, g.Allow(1000))
		assert.Equal(t, 100*ms, g.Delay(1000))
		pass(time.Minute)
		assert.Equal(t, []time.Duration{525 * ms, 575 * ms}, r.left())
		assert.Zero(t, g.Len())

		require.True(t, g.Allow(1))
		require.True(t, g.Allow(2))
		err := g.SetRates(func(key int) scheduler.Rate { return scheduler.PerSecond(int64(key - 1)) })
		assert.ErrorContains(t, err, "0/s")
		assert.Equal(t, 50*ms, g.Delay(1), "it has kept its rate")
		assert.Equal(t, time.Second, g.Delay(2))
	})
}

// A key that is made while the function is replaced has the rate of one or the other, and
// once SetRates has returned, that of the new one.
func TestSetRatesMeetsNewKeys(t *testing.T) {
	g := newGroup[int](t, scheduler.PerSecond(1))
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for key := range 500 {
				g.Allow(1000*i + key)
			}
		})
	}
	for i := range 20 {
		require.NoError(t, g.SetRates(func(int) scheduler.Rate { return scheduler.PerHour(int64(1 + i)) }))
	}
	all.Wait()
	for key, state := range g.Range {
		require.Equal(t, scheduler.PerHour(20), state.Rate, "key %d", key)
	}
	assert.Equal(t, 2000, g.Len())
}

// SetRate sets the rate that it is given, whatever the function says next.
func TestSetRateMeetsAFunctionThatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		g := newGroup[string](t, scheduler.PerSecond(9), shaper.WithRates(func(string) scheduler.Rate {
			return scheduler.PerSecond(1 + asked.Add(1)%2)
		}))
		require.True(t, g.Allow("a"))
		for units := range int64(8) {
			r := scheduler.PerSecond(1 + units%3)
			require.NoError(t, g.SetRate("a", r))
			for _, state := range g.Range {
				assert.Zero(t, r.Cmp(state.Rate), "%v, want %v", state.Rate, r)
			}
		}
	})
}

// A function that panics when it is asked once more, as it was replaced meanwhile, costs no
// place.
func TestPanickingRatesTakeNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g *shaper.Group[string]
		replace := func(f func(string) scheduler.Rate) { _ = g.SetRates(f) }
		g = newGroup[string](t, scheduler.PerSecond(9), shaper.WithMaxKeys(1), shaper.WithRates(func(string) scheduler.Rate {
			replace(func(string) scheduler.Rate { panic("no rate") })
			return scheduler.PerSecond(1)
		}))
		assert.PanicsWithValue(t, "no rate", func() { g.Allow("a") })
		assert.Zero(t, g.Len())
		replace(func(string) scheduler.Rate { return scheduler.PerSecond(1) })
		assert.True(t, g.Allow("b"))
		assert.Equal(t, 1, g.Len())
	})
}
