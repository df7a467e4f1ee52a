package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// By weight, a tenant that tries to send less than its own limit gets its ideal share, and
// waits for as long as its weight says, however noisy another one is. One line gives half.
func TestShares(t *testing.T) {
	for seed, noisy := range []float64{60, 120} {
		where := fmt.Sprintf("noisy %v, seed %d", noisy, seed)
		c, err := compare(&settings{noisy: noisy, burst: 1, seed: uint64(seed)})
		require.NoError(t, err)
		fair, plain := &c.trials[0], &c.trials[1]
		for i, tenant := range c.tenants {
			left := float64(fair.results[i].left)
			switch {
			case i == 0:
				assert.Greater(t, left, c.ideal[i]-2, "%s: the noisy tenant", where)
				assert.Greater(t, float64(plain.results[i].left), 5*c.ideal[i], where)
			case tenant.wants > float64(tenant.limit):
				assert.Greater(t, c.share(fair, i), 80., "%s: %s", where, tenant.name)
			default:
				assert.Greater(t, left, c.ideal[i]-2, "%s: %s", where, tenant.name)
				assert.Less(t, fair.results[i].longest, 500*time.Millisecond, "%s: %s", where, tenant.name)
				assert.Less(t, c.share(plain, i), 85., "%s: %s", where, tenant.name)
			}
			if i > 0 {
				assert.Zero(t, fair.results[i].refused, "%s: %s", where, tenant.name)
			}
		}
	}
}

// No tenant leaves more than its own limit allows, and all together no more than the
// account's.
func TestLimits(t *testing.T) {
	c, err := compare(&settings{noisy: 120, burst: 1, seed: 1})
	require.NoError(t, err)
	seconds := int(length.Seconds())
	total := 0
	for i, r := range c.trials[0].results {
		assert.LessOrEqual(t, r.left, c.tenants[i].limit*seconds+1, c.tenants[i].name)
		assert.LessOrEqual(t, r.left+r.refused, c.asked[i], c.tenants[i].name)
		total += r.left
	}
	assert.LessOrEqual(t, total, perSecond*seconds+1)
}

func TestFluid(t *testing.T) {
	of := func(weight, limit int) tenant { return tenant{plan: plan{weight: weight, limit: limit, burst: 1}} }
	for _, test := range []struct {
		name    string
		tenants []tenant
		backlog []float64
		want    []float64
	}{
		{"one tenant", []tenant{of(1, 200)}, []float64{1}, []float64{100}},
		{"its own limit", []tenant{of(1, 20)}, []float64{1}, []float64{20}},
		{"no backlog", []tenant{of(1, 20)}, []float64{0}, []float64{0}},
		{"by weight", []tenant{of(1, 200), of(3, 200)}, []float64{1, 9}, []float64{25, 75}},
		{"what one does not take goes to the others", []tenant{of(1, 200), of(2, 200), of(2, 10)}, []float64{1, 1, 1}, []float64{30, 60, 10}},
		{"one after another at its limit", []tenant{of(1, 10), of(1, 35), of(2, 200)}, []float64{1, 1, 1}, []float64{10, 30, 60}},
		{"all at their limits", []tenant{of(1, 10), of(5, 20)}, []float64{1, 1}, []float64{10, 20}},
		{"all at once", []tenant{of(1, 50), of(1, 50)}, []float64{1, 1}, []float64{50, 50}},
	} {
		assert.InDeltaSlice(t, test.want, (&fluid{tenants: test.tenants, backlog: test.backlog, saved: make([]float64, len(test.tenants))}).rates(), 1e-9, test.name)
	}

	// 100 calls of each at 0, weights 1 and 3: until 4/3 s they get 25/s and 75/s, and then
	// the first one all. One of the second comes at 10 s.
	var calls []arrival
	for range 100 {
		calls = append(calls, arrival{0, 0}, arrival{0, 1})
	}
	calls = append(calls, arrival{10 * time.Second, 1}, arrival{length - 5*time.Millisecond, 0})
	assert.InDeltaSlice(t, []float64{100.5, 101}, ideal([]tenant{of(1, 200), of(3, 200)}, calls), 1e-6)
}

// A tenant saves up to a burst less one call while it takes less than its own limit, and takes
// that as fast as the account lets it.
func TestFluidBurst(t *testing.T) {
	all := []tenant{{plan: plan{weight: 1, limit: 2, burst: 11}}}
	calls := make([]arrival, 1000)
	for i := range calls {
		calls[i].at = length - time.Second
	}
	assert.InDeltaSlice(t, []float64{12}, ideal(all, calls), 1e-6)
	for i := range calls {
		calls[i].at = length - 50*time.Millisecond
	}
	assert.InDeltaSlice(t, []float64{5}, ideal(all, calls), 1e-6)
}

// With a burst of 2 a tenant near its own limit catches up with what its waiting took it.
func TestBurst(t *testing.T) {
	c, err := compare(&settings{noisy: 80, burst: 2, seed: 1})
	require.NoError(t, err)
	for i := range c.tenants {
		assert.Greater(t, c.share(&c.trials[0], i), 97., c.tenants[i].name)
	}
}

func TestArrivals(t *testing.T) {
	all := tenants(plans(80, 1))
	require.Len(t, all, 50)
	calls := arrivals(all, 1)
	asked := make([]int, len(all))
	for i, c := range calls {
		require.True(t, c.at >= 0 && c.at < length)
		require.True(t, i == 0 || calls[i-1].at <= c.at)
		asked[c.tenant]++
	}
	for i, n := range asked {
		assert.InEpsilon(t, all[i].wants*length.Seconds(), n, .15, all[i].name)
	}
	assert.Equal(t, calls, arrivals(all, 1))
	assert.NotEqual(t, calls, arrivals(all, 2))
	for _, c := range arrivals(tenants(plans(0, 1)), 1) {
		require.NotZero(t, c.tenant)
	}
}

func TestAgenda(t *testing.T) {
	a := newAgenda()
	var did []string
	note := func(what string) func() {
		return func() { did = append(did, fmt.Sprint(a.elapsed(), " ", what)) }
	}
	a.at(2*time.Second, note("later"))
	a.at(time.Second, note("first"))
	a.at(time.Second, func() { a.AfterFunc(-1, note("at once")) })
	stopped := a.AfterFunc(time.Second, note("never"))
	a.AfterFunc(time.Second, note("third"))
	a.at(5*time.Second, note("beyond the end"))
	assert.True(t, stopped.Stop())
	a.run(4 * time.Second)
	assert.Equal(t, []string{"1s first", "1s third", "1s at once", "2s later"}, did)
	assert.Equal(t, 4*time.Second, a.elapsed())
}
