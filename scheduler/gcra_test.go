package scheduler_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/oracle"
	"github.com/sluice-go/sluice/internal/trial"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/schedulertest"
)

var origin = time.Date(2026, time.May, 1, 9, 0, 0, 0, time.UTC)

func newGCRA(t testing.TB, r scheduler.Rate, burst int64, opts ...scheduler.GCRAOption) *scheduler.GCRA {
	t.Helper()
	g, err := scheduler.NewGCRA(r, burst, opts...)
	require.NoError(t, err)
	return g
}

func TestGCRAConformance(t *testing.T) {
	for _, tt := range []struct {
		rate      scheduler.Rate
		burst     int64
		tolerance time.Duration
	}{
		{scheduler.PerSecond(10), 1, 0},
		{scheduler.PerSecond(100), 3, 0},
		{scheduler.PerSecond(3), 1, 0},
		{scheduler.PerSecond(7), 4, 0},
		{scheduler.PerSecond(333), 10, 5 * time.Millisecond},
		{scheduler.PerMinute(60), 2, time.Second},
		{scheduler.PerDay(5), 1, 0},
		{scheduler.PerDay(1_000_003), 3, 0},
		{scheduler.PerSecond(2_000_000_000), 1, 0},
		{scheduler.Per(math.MaxInt64, time.Hour), 1, 0},
		{scheduler.Per(math.MaxInt64, math.MaxInt64-1), 1, 0},
	} {
		t.Run(tt.rate.String(), func(t *testing.T) {
			schedulertest.Run(t, schedulertest.Config{
				New: func() scheduler.Scheduler {
					return newGCRA(t, tt.rate, tt.burst, scheduler.WithTolerance(tt.tolerance))
				},
				Step:       tt.rate.Interval(),
				ExactAhead: true,
				Conforms:   definitionOf(tt.rate, tt.burst).unless(tt.tolerance > 0),
			})
		})
	}
}

// drain lets count units leave at the earliest instants, all waiting since the
// origin, and returns when they left.
func drain(s scheduler.Scheduler, count int) []time.Duration {
	left := make([]time.Duration, count)
	for i := range left {
		due := s.Next(origin, 0, 1)
		s.Commit(due, due, 1)
		left[i] = due.Sub(origin)
	}
	return left
}

func TestGCRAIsExact(t *testing.T) {
	for _, tt := range []struct {
		rate  scheduler.Rate
		count int           // as many units as the period holds
		over  time.Duration // and the period
	}{
		{scheduler.PerSecond(3), 10_800, time.Hour},
		{scheduler.PerSecond(7), 604_800, day},
		{scheduler.PerDay(10_000), 10_000, day},
		{scheduler.PerSecond(1500), 1500, time.Second},
		{scheduler.PerSecond(999_999_937), 100, 100*time.Second/999_999_937 + 1},
	} {
		t.Run(tt.rate.String(), func(t *testing.T) {
			left := drain(newGCRA(t, tt.rate, 1), tt.count+1)
			for i, at := range left {
				if want := tt.rate.For(int64(i)); at != want {
					t.Fatalf("unit %d left at %v, want %v", i, at, want)
				}
			}
			assert.Less(t, left[tt.count-1], tt.over, "the last unit of the period")
			assert.Equal(t, tt.over, left[tt.count], "the first unit after the period")
		})
	}
}

const day = 24 * time.Hour

func TestGCRAToleranceAbsorbsLateness(t *testing.T) {
	const late = time.Millisecond
	g := newGCRA(t, scheduler.PerSecond(100), 1, scheduler.WithTolerance(5*time.Millisecond))
	var left time.Time
	for range 1000 {
		due := g.Next(origin, 0, 1)
		left = due
		if due.After(origin) {
			left = due.Add(late)
		}
		g.Commit(due, left, 1)
	}
	assert.Equal(t, 9991*time.Millisecond, left.Sub(origin))
}

func TestGCRARestartsAfterAStall(t *testing.T) {
	const tolerance = 5 * time.Millisecond
	g := newGCRA(t, scheduler.PerSecond(100), 1, scheduler.WithTolerance(tolerance))
	g.Commit(origin, origin, 1)
	due := g.Next(origin, 0, 1)
	left := due.Add(time.Second)
	g.Commit(due, left, 1)
	assert.Equal(t, left.Add(10*time.Millisecond-tolerance), g.Next(origin, 0, 1))
}

func TestGCRACostAboveTheBurstIsPaidAfterwards(t *testing.T) {
	g := newGCRA(t, scheduler.PerSecond(10), 3)
	g.Commit(origin, origin, 1)
	due := g.Next(origin, 0, 8)
	assert.Equal(t, 100*time.Millisecond, due.Sub(origin), "waits for the full bucket")
	g.Commit(due, due, 8)
	assert.Equal(t, 700*time.Millisecond, g.Next(due, 0, 1).Sub(origin), "100 + 8·T - 2·T")
}

func TestGCRAUnlimitedDelaysNothing(t *testing.T) {
	g := newGCRA(t, scheduler.Unlimited, 1)
	for range 100_000 {
		require.Equal(t, origin, g.Next(origin, math.MaxInt64, math.MaxInt64))
		g.Commit(origin, origin, 1)
	}
	require.NoError(t, g.SetRate(origin, scheduler.PerSecond(10)))
	assert.Equal(t, []time.Duration{0, 100 * time.Millisecond, 200 * time.Millisecond}, drain(g, 3))
}

func TestGCRASetRateKeepsOwedUnits(t *testing.T) {
	g := newGCRA(t, scheduler.Every(2*time.Second), 1)
	g.Commit(origin, origin, 1)
	now := origin.Add(100 * time.Millisecond)
	require.NoError(t, g.SetRate(now, scheduler.PerSecond(1000)))
	assert.Equal(t, now.Add(950*time.Microsecond), g.Next(now, 0, 1))
	assert.Equal(t, scheduler.PerSecond(1000), g.Rate())
}

// A change between rates that have no fraction in common must not add up.
func TestGCRASetRateDoesNotDrift(t *testing.T) {
	rates := []scheduler.Rate{scheduler.PerSecond(3), scheduler.PerMinute(7), scheduler.PerDay(1_000_003),
		scheduler.Every(250 * time.Millisecond), scheduler.PerSecond(333)}
	g := newGCRA(t, scheduler.PerSecond(11), 1)
	const owed = 1000
	g.Commit(origin, origin, owed)
	for i := range 1000 {
		require.NoError(t, g.SetRate(origin, rates[i%len(rates)]))
		want := rates[i%len(rates)].For(owed)
		assert.InDelta(t, want, g.Next(origin, 0, 1).Sub(origin), 1, "after %d changes", i+1)
	}
	require.NoError(t, g.SetRate(origin, scheduler.PerSecond(11)))
	assert.Equal(t, scheduler.PerSecond(11).For(owed), g.Next(origin, 0, 1).Sub(origin))
}

func TestGCRARefusesNonsense(t *testing.T) {
	g := newGCRA(t, scheduler.PerSecond(10), 2)
	for _, tt := range []struct {
		name  string
		rate  scheduler.Rate
		burst int64
		opts  []scheduler.GCRAOption
		names string
	}{
		{"no rate", scheduler.Rate{}, 1, nil, "0/0s"},
		{"rate 0", scheduler.PerSecond(0), 1, nil, "0/s"},
		{"rate -1", scheduler.PerMinute(-1), 1, nil, "-1/min"},
		{"period 0", scheduler.Every(0), 1, nil, "1/0s"},
		{"negative period", scheduler.Every(-time.Second), 1, nil, "1/-1s"},
		{"burst 0", scheduler.PerSecond(1), 0, nil, "burst 0"},
		{"burst -1", scheduler.PerSecond(1), -1, nil, "burst -1"},
		{"negative tolerance", scheduler.PerSecond(1), 1,
			[]scheduler.GCRAOption{scheduler.WithTolerance(-time.Millisecond)}, "tolerance -1ms"},
		{"burst for ever", scheduler.PerDay(1), math.MaxInt64, nil, "burst 9223372036854775807 at rate 1/24h"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := scheduler.NewGCRA(tt.rate, tt.burst, tt.opts...)
			assert.ErrorContains(t, err, tt.names)
		})
	}
	before := g.Rate()
	assert.ErrorContains(t, g.SetRate(origin, scheduler.PerSecond(0)), "0/s")
	assert.Equal(t, before, g.Rate())
}

// modelRun compares a GCRA with the exact model over random operations.
func modelRun(t *testing.T, rng *rand.Rand, units int64, period time.Duration, burst int64, tolerance time.Duration, steps int) {
	t.Helper()
	rate := scheduler.Per(units, period)
	g := newGCRA(t, rate, burst, scheduler.WithTolerance(tolerance))
	m := &oracle.GCRA{T: oracle.Interval(units, period), Burst: burst, Tolerance: tolerance}
	interval := int64(rate.Interval())
	var now int64
	for range steps {
		if rng.IntN(3) == 0 {
			now += rng.Int64N(3*interval + 1)
		}
		now = clear(m, now)
		if rng.IntN(8) == 0 {
			units := 1 + rng.Int64N(50)
			if err := g.SetRate(origin.Add(time.Duration(now)), scheduler.Per(units, period)); err == nil {
				m.SetInterval(oracle.Instant(now), oracle.Interval(units, period))
			}
		}
		n := 1 + rng.Int64N(2*burst)
		got := g.Next(origin.Add(time.Duration(now)), 0, n).Sub(origin)
		exact := m.Due(oracle.Instant(now), n)
		if want := oracle.Ceil(exact).Int64(); int64(got) != want {
			t.Fatalf("rate %v burst %d: %d units asked for at %d are due at %d, want %v", rate, burst, n, now, got, exact.FloatString(6))
		}
		left, exactLeft := int64(got), exact
		if rng.IntN(4) == 0 { // a late departure
			left += rng.Int64N(int64(tolerance)*2 + interval)
			left = clear(m, left-int64(tolerance)) + int64(tolerance)
			exactLeft = oracle.Instant(left)
		}
		due := origin.Add(got)
		g.Commit(due, origin.Add(time.Duration(left)), n)
		m.Leave(exact, exactLeft, n)
		now = max(now, left)
	}
}

// clear moves an instant on until no TAT blurs it.
func clear(m *oracle.GCRA, at int64) int64 {
	for m.Blurs(oracle.Instant(at)) {
		at++
	}
	return at
}

func TestGCRAEqualsTheModel(t *testing.T) {
	trial.Run(t, 1000, func(t *testing.T, rng *rand.Rand) {
		units := []int64{1, 3, 7, 60, 333, 1_000_003}[rng.IntN(6)]
		period := []time.Duration{time.Second, time.Minute, day, 250 * time.Millisecond}[rng.IntN(4)]
		modelRun(t, rng, units, period,
			1+rng.Int64N(6), time.Duration(rng.Int64N(2))*5*time.Millisecond, 50)
	})
}

// FuzzGCRA holds any rate, cost and ahead to the model: never above the rate plus
// the burst, never idle while due, never negative, no panic.
func FuzzGCRA(f *testing.F) {
	f.Add(int64(10), int64(time.Second), int64(1), int64(0), int64(1), int64(0), uint64(1))
	f.Add(int64(3), int64(time.Second), int64(5), int64(5*time.Millisecond), int64(9), int64(100), uint64(2))
	f.Add(int64(1), int64(math.MaxInt64), int64(1), int64(0), int64(math.MaxInt64), int64(math.MaxInt64), uint64(3))
	f.Add(int64(math.MaxInt64), int64(1), int64(math.MaxInt64), int64(0), int64(-1), int64(math.MinInt64), uint64(4))
	f.Fuzz(func(t *testing.T, units, period, burst, tolerance, n, ahead int64, seed uint64) {
		rate := scheduler.Per(units, time.Duration(period))
		g, err := scheduler.NewGCRA(rate, burst, scheduler.WithTolerance(time.Duration(tolerance)))
		if err != nil {
			return
		}
		for _, at := range []time.Time{origin, origin.Add(time.Duration(seed % (1 << 40)))} {
			if got := g.Next(at, ahead, n); got.Before(at) {
				t.Fatalf("Next(%v, %d, %d) = %v lies before t", at, ahead, n, got)
			}
			g.Commit(at, at, n)
		}
		// Over longer times the model's instants leave the range of an int64.
		if period < int64(1000*day) && burst < 1000 && tolerance < int64(day) {
			rng := rand.New(rand.NewPCG(seed, 0))
			modelRun(t, rng, units, time.Duration(period), burst, time.Duration(tolerance), 20)
		}
	})
}

func TestGCRAForfeit(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	for _, tt := range []struct {
		name       string
		used, keep int64
		want       []time.Duration // of three units that wait at 1 s
	}{
		{"a full bucket", 1, 1, []time.Duration{ms(1000), ms(1100), ms(1200)}},
		{"keeps two", 1, 2, []time.Duration{ms(1000), ms(1000), ms(1100)}},
		{"keeps no more than the burst", 1, 9, []time.Duration{ms(1000), ms(1000), ms(1000)}},
		{"keep below 1", 1, -1, []time.Duration{ms(1000), ms(1100), ms(1200)}},
		{"what is owed stays owed", 20, 1, []time.Duration{ms(1800), ms(1900), ms(2000)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGCRA(t, scheduler.PerSecond(10), 3)
			g.Commit(origin, origin, tt.used)
			open := origin.Add(time.Second)
			g.Forfeit(open, tt.keep)
			for _, want := range tt.want {
				due := g.Next(open, 0, 1)
				assert.Equal(t, want, due.Sub(origin))
				g.Commit(due, due, 1)
			}
		})
	}
}

func TestGCRACutsAWaitAt292Years(t *testing.T) {
	g := newGCRA(t, scheduler.PerDay(1), 1)
	assert.Equal(t, time.Duration(math.MaxInt64), g.Next(origin, 200_000, 1).Sub(origin))
	g.Commit(origin, origin, 200_000)
	assert.Equal(t, time.Duration(math.MaxInt64), g.Next(origin, 0, 1).Sub(origin))
	g.Commit(origin, origin, math.MaxInt64)
	assert.Equal(t, time.Duration(math.MaxInt64), g.Next(origin, 0, 1).Sub(origin))
}

// Costs that no time can pay move TAT as far as a wait can be told, and no further however
// many there are: the state of such a schedule can be loaded.
func TestGCRAOwesCenturiesAtMost(t *testing.T) {
	const never = time.Duration(math.MaxInt64)
	g := newGCRA(t, scheduler.PerSecond(3), 2)
	for i := range 40 {
		now := origin.Add(time.Duration(i) * time.Second)
		g.Commit(now, now, math.MaxInt64)
		assert.Equal(t, now.Add(never), g.TAT())
	}
	state, err := g.MarshalBinary()
	require.NoError(t, err)
	var loaded scheduler.GCRA
	require.NoError(t, loaded.UnmarshalBinary(state))
	assert.Equal(t, g.TAT(), loaded.TAT())
}
