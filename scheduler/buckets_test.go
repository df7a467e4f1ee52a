package scheduler_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/trial"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/schedulertest"
)

func newTokenBucket(t testing.TB, r scheduler.Rate, burst int64) *scheduler.TokenBucket {
	t.Helper()
	b, err := scheduler.NewTokenBucket(r, burst)
	require.NoError(t, err)
	return b
}

func newLeakyBucket(t testing.TB, r scheduler.Rate, capacity int64) *scheduler.LeakyBucket {
	t.Helper()
	b, err := scheduler.NewLeakyBucket(r, capacity)
	require.NoError(t, err)
	return b
}

// spellings are the three forms of one rule.
func spellings(t testing.TB, r scheduler.Rate, burst int64) map[string]scheduler.Scheduler {
	t.Helper()
	return map[string]scheduler.Scheduler{
		"GCRA":        newGCRA(t, r, burst),
		"TokenBucket": newTokenBucket(t, r, burst),
		"LeakyBucket": newLeakyBucket(t, r, burst),
	}
}

// definitionOf is that of a bucket, where an interval is whole nanoseconds.
func definitionOf(r scheduler.Rate, burst int64) definition {
	if int64(r.Period())%r.Units() != 0 {
		return nil
	}
	return bucket(burst, r.Interval())
}

func TestBucketsConformance(t *testing.T) {
	for _, tt := range []struct {
		rate  scheduler.Rate
		burst int64
	}{
		{scheduler.PerSecond(10), 1},
		{scheduler.PerMinute(600), 7},
		{scheduler.PerSecond(3), 1},
		{scheduler.PerSecond(7), 20},
		{scheduler.PerDay(1_000_003), 3},
		{scheduler.PerSecond(2_000_000_000), 1},
		{scheduler.Per(math.MaxInt64, math.MaxInt64-1), 2},
	} {
		for name := range spellings(t, tt.rate, tt.burst) {
			t.Run(name+"/"+tt.rate.String(), func(t *testing.T) {
				schedulertest.Run(t, schedulertest.Config{
					New:        func() scheduler.Scheduler { return spellings(t, tt.rate, tt.burst)[name] },
					Step:       tt.rate.Interval(),
					ExactAhead: true,
					Conforms:   definitionOf(tt.rate, tt.burst),
				})
			})
		}
	}
}

func TestThreeSpellingsOfOneRule(t *testing.T) {
	trial.Run(t, 100, func(t *testing.T, rng *rand.Rand) {
		rate := scheduler.Per(1+rng.Int64N(400), []time.Duration{time.Second, time.Minute, day}[rng.IntN(3)])
		burst := 1 + rng.Int64N(20)
		gcra, tokens, leaky := newGCRA(t, rate, burst), newTokenBucket(t, rate, burst), newLeakyBucket(t, rate, burst)
		now := origin
		var retry time.Duration
		for range 200 {
			switch rng.IntN(4) {
			case 0:
				now = now.Add(time.Duration(rng.Int64N(int64(3 * rate.Interval()))))
			case 1:
				now = now.Add(time.Duration(rng.Int64N(int64(2*rate.For(burst) + 1))))
			case 2:
				now = now.Add(max(0, retry-time.Duration(rng.Int64N(2)))) // as told, or 1 ns before
			}
			n := 1 + rng.Int64N(burst)
			ok, wait := scheduler.Allow(gcra, now, n)
			for name, s := range map[string]scheduler.Scheduler{"token bucket": tokens, "leaky bucket": leaky} {
				gotOK, gotWait := scheduler.Allow(s, now, n)
				if gotOK != ok || gotWait != wait {
					t.Fatalf("rate %v burst %d: %d units at %v: GCRA says %v %v, %s %v %v",
						rate, burst, n, now.Sub(origin), ok, wait, name, gotOK, gotWait)
				}
			}
			retry = wait
		}
	})
}

// Capacity 10, 2 per second: 15 arrivals at 0 s, 4 at 1 s, 1 at 2 s.
func TestWorkedTrace(t *testing.T) {
	for name, s := range spellings(t, scheduler.PerSecond(2), 10) {
		var admitted []int
		for i, arrivals := range []int{15, 4, 1} {
			n := 0
			for range arrivals {
				if ok, _ := scheduler.Allow(s, origin.Add(time.Duration(i)*time.Second), 1); ok {
					n++
				}
			}
			admitted = append(admitted, n)
		}
		assert.Equal(t, []int{10, 2, 1}, admitted, name)
	}
}

func TestSpellingsAtThreePerSecond(t *testing.T) {
	for name, s := range spellings(t, scheduler.PerSecond(3), 1) {
		assert.Equal(t, []time.Duration{0, 333_333_334, 666_666_667, time.Second}, drain(s, 4), name)
	}
	for name, s := range spellings(t, scheduler.PerSecond(3), 1) {
		scheduler.Allow(s, origin, 1)
		early, retry := scheduler.Allow(s, origin.Add(333*time.Millisecond), 1)
		assert.False(t, early, name)
		assert.Equal(t, 333_334*time.Nanosecond, retry, name)
		ok, _ := scheduler.Allow(s, origin.Add(334*time.Millisecond), 1)
		assert.True(t, ok, name)
	}
}

func TestBucketsAfterAMonthOfIdleEqualFreshOnes(t *testing.T) {
	rate := scheduler.PerSecond(1_000_000_007)
	for name, used := range spellings(t, rate, 50) {
		fresh := spellings(t, rate, 50)[name]
		used.Commit(origin, origin, 37)
		month := origin.Add(30 * day)
		for range 100 {
			want, got := fresh.Next(month, 0, 7), used.Next(month, 0, 7)
			assert.Equal(t, want, got, name)
			fresh.Commit(want, want, 7)
			used.Commit(got, got, 7)
		}
	}
}

func TestBucketsRefuseACostThatNeverFits(t *testing.T) {
	for name, s := range spellings(t, scheduler.PerSecond(10), 5) {
		if name == "GCRA" {
			continue // pays it off afterwards
		}
		assert.EqualValues(t, 5, s.MaxCost(), name)
		ok, wait := scheduler.Allow(s, origin, 6)
		assert.False(t, ok, name)
		assert.Equal(t, time.Duration(math.MaxInt64), wait, name)
		ok, _ = scheduler.Allow(s, origin, 5)
		assert.True(t, ok, "%s: a cost that fits exactly passes, and nothing is wedged", name)
	}
}

func TestBucketsSetRate(t *testing.T) {
	type settable interface {
		scheduler.Scheduler
		SetRate(time.Time, scheduler.Rate) error
	}
	for name, s := range spellings(t, scheduler.PerSecond(10), 1) {
		s := s.(settable)
		s.Commit(origin, origin, 1)
		now := origin.Add(50 * time.Millisecond)
		require.NoError(t, s.SetRate(now, scheduler.PerSecond(5)), name)
		assert.Equal(t, now.Add(100*time.Millisecond), s.Next(now, 0, 1), "%s: half a unit is owed", name)

		require.NoError(t, s.SetRate(now, scheduler.Unlimited), name)
		assert.Equal(t, now, s.Next(now, 100, 1), name)
		s.Commit(now, now, 1)
		require.NoError(t, s.SetRate(now, scheduler.PerSecond(10)), name)
		assert.Equal(t, now, s.Next(now, 0, 1), name)
		assert.Equal(t, now.Add(100*time.Millisecond), s.Next(now, 1, 1), name)
		assert.ErrorContains(t, s.SetRate(now, scheduler.PerSecond(0)), "0/s", name)
	}
}

// A change of rate must not let a unit leave early, however often the rate changes
// between periods that have nothing in common.
func TestBucketsSetRateNeverRoundsInFavour(t *testing.T) {
	rates := []scheduler.Rate{scheduler.PerSecond(3), scheduler.Every(7), scheduler.Per(5, 3), scheduler.PerMinute(11)}
	const owed = 1000
	tokens, leaky := newTokenBucket(t, rates[0], owed), newLeakyBucket(t, rates[0], owed)
	for _, b := range []interface {
		scheduler.Scheduler
		SetRate(time.Time, scheduler.Rate) error
	}{tokens, leaky} {
		b.Commit(origin, origin, owed)
		for i := range 10_000 {
			rate := rates[(i+1)%len(rates)]
			require.NoError(t, b.SetRate(origin, rate))
			require.GreaterOrEqual(t, b.Next(origin, 0, owed).Sub(origin), rate.For(owed), "%T after %d changes", b, i+1)
		}
		// Each change may lose less than one nanosecond's worth.
		assert.Less(t, b.Next(origin, 0, owed).Sub(origin), rates[0].For(owed+1), "%T", b)
	}
}

func TestForfeitedLeavesTheOriginalAlone(t *testing.T) {
	for name, s := range spellings(t, scheduler.PerSecond(10), 5) {
		other := s.(interface {
			Forfeited(time.Time, int64) scheduler.Scheduler
		}).Forfeited(origin, 1)
		assert.Equal(t, steps(100*time.Millisecond, 3), drain(other, 3), name)
		assert.Equal(t, steps(0, 3), drain(s, 3), name)
	}
	both := scheduler.All(newTokenBucket(t, scheduler.PerSecond(10), 5), newSlidingLog(t, 2, time.Second))
	other := both.(interface {
		Forfeited(time.Time, int64) scheduler.Scheduler
	}).Forfeited(origin, 1)
	assert.Equal(t, origin.Add(100*time.Millisecond), other.Next(origin, 1, 1))
	assert.Equal(t, origin, both.Next(origin, 1, 1))
}

// steps returns count times, interval apart.
func steps(interval time.Duration, count int) []time.Duration {
	out := make([]time.Duration, count)
	for i := range out {
		out[i] = time.Duration(i) * interval
	}
	return out
}

func TestBucketsForfeit(t *testing.T) {
	for name, s := range spellings(t, scheduler.PerSecond(10), 5) {
		s.(interface{ Forfeit(time.Time, int64) }).Forfeit(origin, 2)
		assert.Equal(t, []time.Duration{0, 0, 100 * time.Millisecond, 200 * time.Millisecond}, drain(s, 4), name)
	}
}

func TestBucketsRefuseNonsense(t *testing.T) {
	for names, build := range map[string]func() error{
		"burst 0":    func() error { _, err := scheduler.NewTokenBucket(scheduler.PerSecond(1), 0); return err },
		"0/s":        func() error { _, err := scheduler.NewTokenBucket(scheduler.PerSecond(0), 1); return err },
		"capacity 0": func() error { _, err := scheduler.NewLeakyBucket(scheduler.PerSecond(1), 0); return err },
		"-1/s":       func() error { _, err := scheduler.NewLeakyBucket(scheduler.PerSecond(-1), 1); return err },
		"takes longer": func() error {
			_, err := scheduler.NewTokenBucket(scheduler.PerDay(1), 1<<60)
			return err
		},
		"burst 1152921504606846977": func() error {
			_, err := scheduler.NewTokenBucket(scheduler.PerSecond(1_000_000_000), 1<<60+1)
			return err
		},
		"capacity 9223372036854775807": func() error {
			_, err := scheduler.NewLeakyBucket(scheduler.PerSecond(2_000_000_000), math.MaxInt64)
			return err
		},
	} {
		assert.ErrorContains(t, build(), names)
	}
}
