package shaper_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/oracle"
	"github.com/sluice-go/sluice/internal/trial"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

const (
	day  = 24 * time.Hour
	year = 365 * day
)

// oddRates are slow and fast ones, with coarse and fine fractions, and at the ends of what
// can be told.
var oddRates = []scheduler.Rate{
	scheduler.PerDay(1), scheduler.Per(333, 250*ms), scheduler.Per(7, 7*day), scheduler.PerSecond(2e8),
	scheduler.PerSecond(999_983), scheduler.Per(1048573, time.Second), scheduler.Per(1<<20, 3*time.Second+1),
	scheduler.Per(1<<20+7, time.Hour), scheduler.PerSecond(3e9), scheduler.Unlimited, scheduler.PerSecond(3), scheduler.Per(1, 1),
	scheduler.Per(math.MaxInt64, math.MaxInt64-1), scheduler.Per(math.MaxInt64-24, time.Hour), scheduler.Per(1048576, 1),
	scheduler.Per(999_983, 997*time.Second), scheduler.Per(1, 40*year),
}

// An agreeRun asks the same of a Shaper that may let calls leave without its lock (the
// fast), of one that may not, and of a key of a Group.
type agreeRun struct {
	t      *testing.T
	rng    *rand.Rand
	start  time.Time
	pacers []pacer
	rate   scheduler.Rate
	burst  int
	step   int
}

// newAgreeRun returns nil for a burst that takes longer to fill than can be told.
func newAgreeRun(t *testing.T, rng *rand.Rand) *agreeRun {
	a := &agreeRun{t: t, rng: rng, start: time.Now(), rate: oddRates[rng.IntN(len(oddRates))]}
	a.burst = []int{1, 2, 5, 1000, 1_000_000}[rng.IntN(5)]
	fast, err := shaper.New(a.rate, shaper.WithBurst(a.burst))
	if err != nil {
		return nil
	}
	lock := newShaper(t, a.rate, shaper.WithBurst(a.burst), shaper.WithClock(clock.New()))
	a.pacers = []pacer{fast, lock, newKey(t, a.rate, shaper.WithBurst(a.burst))}
	return a
}

// now returns the time since the start.
func (a *agreeRun) now() time.Duration { return time.Since(a.start) }

// interval returns T, or at most the given time.
func (a *agreeRun) interval(most time.Duration) time.Duration {
	return min(max(a.rate.Interval(), 1), most)
}

// jump lets some time pass: nothing, about an interval, around the horizons of ticks, decades.
func (a *agreeRun) jump() {
	interval := a.interval(60 * year)
	d := []time.Duration{
		0, 1, 2, interval - 1, interval, interval + 1, 2 * interval, time.Duration(a.rng.Int64N(int64(3*interval) + 1)),
		9 * time.Minute, 10 * time.Minute, 18 * time.Minute, 37 * time.Minute, time.Hour, 5 * time.Hour, 20 * day, 41 * day,
		19 * year, 37 * year, time.Duration(a.rng.Int64N(1 << 52)), 1 << 39, 1 << 40, 1<<40 + 1,
	}[a.rng.IntN(22)]
	if a.now()+d < 150*year {
		time.Sleep(d)
	}
}

// cost returns that of a call, of which less than 80 years are owed afterwards.
func (a *agreeRun) cost() int {
	cost := 1
	switch a.rng.IntN(6) {
	case 0:
		cost = 1 + a.rng.IntN(4)
	case 1:
		cost = a.burst
	case 2:
		cost = 1 + a.rng.IntN(a.burst)
	case 3:
		if a.rng.IntN(6) == 0 {
			cost = []int{a.burst + 1, 13_000, 1 << 30}[a.rng.IntN(3)]
		}
	}
	if a.rate.For(int64(cost)) > 80*year {
		return 1
	}
	return cost
}

// same checks that all answer alike, and returns what.
func (a *agreeRun) same(what string, f func(pacer) any) any {
	a.t.Helper()
	var got []any
	for _, p := range a.pacers {
		got = append(got, f(p))
	}
	require.Equal(a.t, []any{got[0], got[0], got[0]}, got,
		"%s at %v, step %d: rate %v burst %d: fast, lock, key", what, a.now(), a.step, a.rate, a.burst)
	return got[0]
}

func (a *agreeRun) delay() {
	a.t.Helper()
	got := a.same("Delay", func(p pacer) any { return p.Delay() })
	require.GreaterOrEqual(a.t, got, time.Duration(0))
}

// The fast, the lock, a Group and exact rationals decide alike, for odd rates, bursts and
// costs, over nanoseconds and over decades.
func TestLaneLockGroupAndModelAgree(t *testing.T) {
	trial.Run(t, 800, func(t *testing.T, rng *rand.Rand) {
		synctest.Test(t, func(t *testing.T) {
			a := newAgreeRun(t, rng)
			if a == nil {
				return
			}
			m := oracle.GCRA{T: oracle.Interval(1, 0), Burst: int64(a.burst)}
			if a.rate != scheduler.Unlimited {
				m.T = oracle.Interval(a.rate.Units(), a.rate.Period())
			}
			for ; a.step < 60; a.step++ {
				if rng.IntN(3) == 0 {
					a.jump()
				}
				cost := a.cost()
				got := a.same(fmt.Sprintf("AllowN(%d)", cost), func(p pacer) any { return p.AllowN(cost) })
				want := allowed(&m, a.now(), int64(cost))
				require.Equal(t, want, got, "AllowN(%d) at %v, step %d: rate %v burst %d: the model", cost, a.now(), a.step, a.rate, a.burst)
				if rng.IntN(4) == 0 {
					a.delay()
				}
			}
		})
	})
}

// allowed asks the model. An instant stands for the nanosecond that ends with it: a TAT in
// there has come, and stays where it is.
func allowed(m *oracle.GCRA, now time.Duration, cost int64) bool {
	end, begin := oracle.Instant(int64(now)), oracle.Instant(int64(now)-1)
	if m.Due(begin, cost).Cmp(end) > 0 {
		return false
	}
	left := end
	if m.TAT != nil && m.TAT.Cmp(begin) > 0 && m.TAT.Cmp(end) < 0 {
		left = m.TAT
	}
	m.Leave(left, left, cost)
	return true
}

// They do so with changes between the calls, too: rates, shares, gates, charges.
func TestLaneLockAndGroupAgreeAcrossChanges(t *testing.T) {
	trial.Run(t, 800, func(t *testing.T, rng *rand.Rand) {
		synctest.Test(t, func(t *testing.T) {
			a := newAgreeRun(t, rng)
			if a == nil {
				return
			}
			for ; a.step < 60; a.step++ {
				if rng.IntN(2) == 0 {
					a.jump()
				}
				a.change()
				a.delay()
			}
		})
	})
}

func (a *agreeRun) change() {
	switch a.rng.IntN(12) {
	case 0:
		r := oddRates[a.rng.IntN(len(oddRates))]
		if ok := a.same("SetRate", func(p pacer) any { return p.SetRate(r) == nil }); ok.(bool) {
			a.rate = r
		}
	case 1:
		num := 1 + a.rng.Int64N(9)
		a.same("Scale", func(p pacer) any { return p.Scale(num, 9) == nil })
	case 2:
		a.same("Pause", func(p pacer) any { p.Pause(); return nil })
	case 3, 4:
		a.same("Resume", func(p pacer) any { p.Resume(); return nil })
	case 5:
		until := time.Now().Add(time.Duration(a.rng.Int64N(4 * int64(a.interval(10*year)))))
		a.same("HoldUntil", func(p pacer) any { p.HoldUntil(until); return nil })
	case 6:
		cost := 1 + a.rng.IntN(3)
		a.same("Charge", func(p pacer) any { p.Charge(cost); return nil })
	default:
		cost := 1 + a.rng.IntN(2)*a.rng.IntN(a.burst)
		a.same(fmt.Sprintf("AllowN(%d)", cost), func(p pacer) any { return p.AllowN(cost) })
	}
}
