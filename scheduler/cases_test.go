package scheduler_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
		// The call that may leave first does; A's came first.
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

// A partner's window begins with the first request after the last one has ended.
// Source: AniList/docs#20, Colorfulstan/RiotRateLimiter-node#9, alisaifee/limits#250.
func TestCaseJ19WindowBeginsWithItsFirstRequest(t *testing.T) {
	const limit, window = 90, time.Minute
	for name, tt := range map[string]struct {
		build    func() scheduler.Scheduler
		conforms bool
	}{
		"SlidingLog":  {func() scheduler.Scheduler { return newSlidingLog(t, limit, window) }, true},
		"Within":      {func() scheduler.Scheduler { return newWithin(t, limit, window, 1) }, true},
		"Within/30":   {func() scheduler.Scheduler { return newWithin(t, limit, window, 30) }, true},
		"FixedWindow": {func() scheduler.Scheduler { return newFixedWindow(t, limit, window) }, false},
	} {
		refused := 0
		for seed := range uint64(20) {
			rng := rand.New(rand.NewPCG(seed, 41))
			s, arrived := tt.build(), origin
			var began time.Time
			count := 0
			for range 5000 {
				if rng.IntN(200) == 0 { // an idle spell
					arrived = arrived.Add(time.Duration(rng.Int64N(int64(2 * window))))
				}
				arrived = arrived.Add(time.Duration(rng.Int64N(int64(2 * window / limit))))
				at := s.Next(arrived, 0, 1)
				s.Commit(at, at, 1)
				if at.Sub(began) >= window {
					began, count = at, 0
				}
				if count++; count > limit {
					refused++
				}
			}
		}
		assert.Equal(t, tt.conforms, refused == 0, "%s: %d refused", name, refused)
	}
}

// A limit that is learned while calls wait.
// Source: BenFradet/RiotSharp#557, dolejska-daniel/riot-api#70, stravalib/stravalib#141.
func TestCaseJ12LimitIsLearnedWhileCallsWait(t *testing.T) {
	l := newSlidingLog(t, 2, 10*time.Second)
	left := drain(l, 2)
	told := origin.Add(time.Second)
	require.NoError(t, l.SetLimit(told, 5))
	for range 8 {
		at := l.Next(told, 0, 1)
		l.Commit(at, at, 1)
		left = append(left, at.Sub(origin))
	}
	s := time.Second
	assert.Equal(t, []time.Duration{0, 0, s, s, s, 10 * s, 10 * s, 11 * s, 11 * s, 11 * s}, left)
}
