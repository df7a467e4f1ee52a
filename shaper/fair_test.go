package shaper_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

func newTenants(t *testing.T, account *shaper.Shaper, weight func(string) int, opts ...shaper.Option) *shaper.Group[string] {
	t.Helper()
	g, err := shaper.NewGroup[string](scheduler.Unlimited, append(opts, shaper.Under(account), shaper.WithWeights(weight))...)
	require.NoError(t, err)
	return g
}

func equal(string) int { return 1 }

// A tally counts by key.
type tally struct {
	mu sync.Mutex
	of map[string]int
}

func (c *tally) add(key string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = make(map[string]int)
	}
	c.of[key] += n
}

// take returns what was counted of the key since it was taken last.
func (c *tally) take(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.of[key]
	delete(c.of, key)
	return n
}

// enqueue has the tally count the units of a call when it leaves.
func (c *tally) enqueue(t *testing.T, g *shaper.Group[string], key string, cost int) {
	_, err := g.Enqueue(key, shaper.Call{Cost: cost}, func(err error) {
		if err == nil {
			c.add(key, cost)
		}
	})
	require.NoError(t, err)
}

// A tenant that fills the line is the one that is refused; calls of another leave within 2 T.
func TestCaseK04NoisyTenantFillsTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account := newShaper(t, scheduler.PerSecond(10), shaper.WithQueue(100))
		tenants := newTenants(t, account, equal)
		start := time.Now()
		var refused tally
		a := func() {
			count := func(err error) {
				if errors.Is(err, shaper.ErrQueueFull) {
					refused.add("a", 1)
				}
			}
			if _, err := tenants.Enqueue("a", shaper.Call{}, count); err != nil {
				count(err)
			}
		}
		for range 200 {
			a()
		}
		r := newRecorder()
		var began []time.Duration
		for i := range 1200 {
			time.Sleep(time.Until(start.Add(time.Duration(i+1) * 10 * ms)))
			a()
			if at := time.Since(start); at >= 1020*ms && (at-1020*ms)%time.Second == 0 {
				time.Sleep(5 * ms)
				began = append(began, time.Since(start))
				r.submit(func() error { return tenants.Wait(t.Context(), "b") })
			}
		}
		pass(time.Second)
		require.Len(t, r.left(), 11)
		for i, at := range r.left() {
			assert.LessOrEqual(t, at-began[i], 200*ms)
		}
		assert.Greater(t, refused.take("a"), 1000)
		conserved(t, account)
	})
}

// Busy keys share by weight, whatever their calls cost.
func TestFairShares(t *testing.T) {
	for _, test := range []struct {
		weights, costs, units []int
	}{
		{[]int{1, 1}, []int{1, 5}, []int{300, 300}},
		{[]int{1, 2, 3}, []int{1, 1, 1}, []int{100, 200, 300}},
		{[]int{3, 1, 1}, []int{5, 1, 2}, []int{360, 120, 120}},
	} {
		synctest.Test(t, func(t *testing.T) {
			account := newShaper(t, scheduler.PerSecond(10), shaper.WithQueue(100_000))
			tenants := newTenants(t, account, func(key string) int { return test.weights[key[0]-'a'] })
			var left tally
			for i, cost := range test.costs {
				for range 1000 {
					left.enqueue(t, tenants, string(rune('a'+i)), cost)
				}
			}
			pass(time.Minute - ms)
			for i, units := range test.units {
				assert.InDelta(t, units, left.take(string(rune('a'+i))), 6, "%+v", test)
			}
			require.NoError(t, account.Close())
		})
	}
}

// A tenant with 50,000 waiting calls, and a line that is full: another's single call leaves
// within two intervals, and is not refused.
func TestOneCallBesideAFullLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account := newShaper(t, scheduler.PerSecond(10), shaper.WithQueue(50_000))
		tenants := newTenants(t, account, equal)
		for range 50_010 {
			_, _ = tenants.Enqueue("noisy", shaper.Call{}, func(error) {})
		}
		time.Sleep(1050 * ms)
		began := time.Now()
		for i := range 5 {
			r := newRecorder()
			one := r.submit(func() error { return tenants.Wait(t.Context(), fmt.Sprint(i)) })
			pass(200 * ms)
			require.True(t, one.ended)
			require.NoError(t, one.err)
		}
		assert.Equal(t, time.Second, time.Since(began))
		require.NoError(t, account.Close())
	})
}

// Weights may change while 8,000 calls wait: they count from the next call on.
func TestWeightsChangeWhileCallsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account := newShaper(t, scheduler.PerSecond(100), shaper.WithQueue(10_000))
		tenants := newTenants(t, account, equal)
		var left tally
		for i := range 8000 {
			left.enqueue(t, tenants, string(rune('a'+i%2)), 1)
		}
		pass(10 * time.Second)
		assert.InDelta(t, 500, left.take("a"), 1)
		require.NoError(t, tenants.SetWeight("a", 3))
		pass(10 * time.Second)
		assert.InDelta(t, 750, left.take("a"), 2)
		for _, weight := range []int{0, -1, 1<<20 + 1} {
			assert.Error(t, tenants.SetWeight("a", weight))
		}
		pass(10 * time.Second)
		assert.InDelta(t, 750, left.take("a"), 2)
		require.NoError(t, account.Close())
	})
}

// A function that returns no weight refuses the call that needed it.
func TestNoWeight(t *testing.T) {
	account := newShaper(t, scheduler.PerSecond(10))
	tenants := newTenants(t, account, func(string) int { return 0 })
	assert.ErrorContains(t, tenants.Wait(t.Context(), "a"), "weight 0: must be from 1 to 1048576")
	assert.False(t, tenants.Allow("a"))
	st := tenants.Stats()
	assert.Equal(t, [...]int64{2, 2, 0}, [...]int64{st.Submitted, st.Refused, int64(st.Keys)})
}
