package main

// A comparison is what each tenant should get, and what it got.
type comparison struct {
	tenants []tenant
	asked   []int // calls that came
	ideal   []float64
	trials  []trial
}

// A trial is one way to let the calls wait.
type trial struct {
	name    string
	results []result // of the tenants
}

func compare(set *settings) (*comparison, error) {
	all := tenants(plans(set.noisy, set.burst))
	calls := arrivals(all, set.seed)
	c := &comparison{tenants: all, asked: make([]int, len(all)), ideal: ideal(all, calls)}
	for _, call := range calls {
		c.asked[call.tenant]++
	}
	for _, way := range []struct {
		name string
		line line
	}{{"by weight", byWeight}, {"one line", oneLine}} {
		results, err := send(all, calls, way.line)
		if err != nil {
			return nil, err
		}
		c.trials = append(c.trials, trial{way.name, results})
	}
	return c, nil
}

// share returns what a tenant got, in percent of what is ideal. One that should get nothing
// has all of it.
func (c *comparison) share(t *trial, tenant int) float64 {
	if c.ideal[tenant] == 0 {
		return 100
	}
	return 100 * float64(t.results[tenant].left) / c.ideal[tenant]
}

// least returns the tenant with the least share.
func (c *comparison) least(t *trial) (tenant int) {
	for i := range c.tenants {
		if c.share(t, i) < c.share(t, tenant) {
			tenant = i
		}
	}
	return tenant
}
