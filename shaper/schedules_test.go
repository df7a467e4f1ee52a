package shaper_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

func must[S scheduler.Scheduler](s S, err error) scheduler.Scheduler {
	if err != nil {
		panic(err)
	}
	return s
}

// schedules builds one of every kind.
var schedules = map[string]func() scheduler.Scheduler{
	"GCRA":           func() scheduler.Scheduler { return must(scheduler.NewGCRA(scheduler.PerSecond(7), 3)) },
	"TokenBucket":    func() scheduler.Scheduler { return must(scheduler.NewTokenBucket(scheduler.PerSecond(7), 5)) },
	"LeakyBucket":    func() scheduler.Scheduler { return must(scheduler.NewLeakyBucket(scheduler.PerSecond(7), 5)) },
	"FixedWindow":    func() scheduler.Scheduler { return must(scheduler.NewFixedWindow(7, time.Second)) },
	"SlidingLog":     func() scheduler.Scheduler { return must(scheduler.NewSlidingLog(7, time.Second)) },
	"SlidingCounter": func() scheduler.Scheduler { return must(scheduler.NewSlidingCounter(7, time.Second)) },
	"Within":         func() scheduler.Scheduler { return must(scheduler.Within(7, time.Second, 2)) },
}

// Behind a Shaper each schedule lets calls leave as it would by itself, one after
// the other and as soon as it can; alone and beside another limit.
func TestEverySchedulePaces(t *testing.T) {
	for name, build := range schedules {
		t.Run(name, func(t *testing.T) {
			pacesLike(t, build, func() (*shaper.Shaper, error) { return shaper.NewFrom(build()) })
		})
		t.Run(name+"/beside a rate", func(t *testing.T) {
			both := func() scheduler.Scheduler {
				return scheduler.All(must(scheduler.NewGCRA(scheduler.PerSecond(20), 1)), build())
			}
			pacesLike(t, both, func() (*shaper.Shaper, error) {
				return shaper.New(scheduler.PerSecond(20), shaper.WithTolerance(0), shaper.WithLimits(build()))
			})
		})
	}
}

func pacesLike(t *testing.T, model func() scheduler.Scheduler, build func() (*shaper.Shaper, error)) {
	t.Helper()
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		synctest.Test(t, func(t *testing.T) {
			s, err := build()
			require.NoError(t, err)
			m := model()
			r := newRecorder()
			var want []time.Duration
			last := r.start
			for range 40 {
				if rng.IntN(3) == 0 {
					pass(time.Duration(rng.Int64N(int64(600 * ms))))
				}
				cost := 1 + rng.IntN(3)
				r.submit(func() error { return s.WaitN(t.Context(), cost) })
				if now := time.Now(); last.Before(now) {
					last = now
				}
				last = m.Next(last, 0, int64(cost))
				m.Commit(last, last, int64(cost))
				want = append(want, last.Sub(r.start))
			}
			pass(time.Hour)
			assert.Equal(t, want, r.left())
			conserved(t, s)
		})
	}
}

// Two limits at once, and their waits are not summed.
// Source: laravel/framework#61449, grafana/dskit#1007, sindresorhus/p-queue#176,
// KyberNetwork/reserve-stats#243.
func TestCaseF08TwoLimitsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerMinute(60),
			shaper.WithLimits(must(scheduler.NewGCRA(scheduler.PerSecond(4), 1))))
		r := newRecorder()
		for range 5 {
			r.wait(t.Context(), s)
		}
		pass(time.Minute)
		assert.Equal(t, steps(0, time.Second, 5), r.left())
	})
}

// A daily quota survives a restart: what was used stays used, and the time away
// counts.
func TestQuotaSurvivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fresh := func() *shaper.Shaper {
			return shaper.MustNewFrom(scheduler.Must(scheduler.NewFixedWindow(3, 24*time.Hour)))
		}
		s := fresh()
		for range 2 {
			require.NoError(t, s.Wait(t.Context()))
		}
		require.NoError(t, s.Shutdown(t.Context()))
		state := saved(t, s)

		pass(time.Hour)
		s = fresh()
		require.NoError(t, s.UnmarshalBinary(state))
		require.NoError(t, s.Wait(t.Context()))
		assert.False(t, s.Allow(), "the fourth of the day")
		assert.Equal(t, 23*time.Hour, s.Delay())
	})
}

// A schedule that could never let anything leave is refused when a Shaper is made of it.
func TestUnusableSchedulesAreRefused(t *testing.T) {
	for name, s := range map[string]scheduler.Scheduler{
		"GCRA":           new(scheduler.GCRA),
		"TokenBucket":    new(scheduler.TokenBucket),
		"LeakyBucket":    new(scheduler.LeakyBucket),
		"FixedWindow":    new(scheduler.FixedWindow),
		"SlidingLog":     new(scheduler.SlidingLog),
		"SlidingCounter": new(scheduler.SlidingCounter),
		"Hours":          new(scheduler.Hours),
		"ratedAll":       scheduler.All(new(scheduler.GCRA)),
	} {
		_, err := shaper.NewFrom(s)
		assert.ErrorContains(t, err, name+": its MaxCost is 0")
		_, err = shaper.New(scheduler.PerSecond(1), shaper.WithLimits(s))
		assert.ErrorContains(t, err, "shaper: limit 0, a ")
	}
}
