package scheduler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/scheduler"
)

// A tenant at its limit takes nothing from the limit that it shares.
// Source: laravel/framework#61449, grafana/dskit#1007, sindresorhus/p-queue#176,
// KyberNetwork/reserve-stats#243.
func TestCaseF08AllOrNothing(t *testing.T) {
	global := newGCRA(t, scheduler.PerSecond(10), 1)
	tenants := []struct {
		name  string
		limit scheduler.Scheduler
		calls int
	}{
		{"A", scheduler.All(global, newGCRA(t, scheduler.PerSecond(1), 1)), 5},
		{"B", scheduler.All(global), 9},
	}
	left := map[string][]time.Duration{}
	for {
		// Whoever may leave first does; A came first.
		var first int
		var due time.Time
		for i, tenant := range tenants {
			if tenant.calls == 0 {
				continue
			}
			if at := tenant.limit.Next(origin, 0, 1); due.IsZero() || at.Before(due) {
				first, due = i, at
			}
		}
		if due.IsZero() {
			break
		}
		tenants[first].limit.Commit(due, due, 1)
		tenants[first].calls--
		name := tenants[first].name
		left[name] = append(left[name], due.Sub(origin))
	}
	assert.Equal(t, []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second}, left["A"])
	assert.Equal(t, []time.Duration{100e6, 200e6, 300e6, 400e6, 500e6, 600e6, 700e6, 800e6, 900e6}, left["B"])
}

// As a meter, two limits charge both or none.
// Source: laravel/framework#61449.
func TestCaseF08RefusedChargesNothing(t *testing.T) {
	wide, narrow := newTokenBucket(t, scheduler.PerSecond(10), 10), newTokenBucket(t, scheduler.PerSecond(1), 1)
	both := scheduler.All(wide, narrow)
	passed := 0
	for range 9 {
		if ok, _ := scheduler.Allow(both, origin, 1); ok {
			passed++
		}
	}
	assert.Equal(t, 1, passed)
	ok, _ := scheduler.Allow(wide, origin, 9)
	assert.True(t, ok, "the eight refused took nothing of the wide one")
}
