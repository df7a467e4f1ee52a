package shaper_test

import (
	"context"
	"math"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// Scenarios from public bug reports about pacing outbound calls.

// Source: grafana/rollout-operator#441, blampe/rreading-glasses#452,
// aishek/axios-rate-limit#21.
func TestCaseA01CancelledWaitersGiveTheirSlotsBack(t *testing.T) {
	for _, newestFirst := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newShaper(t, scheduler.PerSecond(10))
			r := newRecorder()
			r.wait(t.Context(), s)
			var waiters []*submitted
			var cancels []context.CancelFunc
			for range 50 {
				ctx, cancel := context.WithCancel(t.Context())
				waiters, cancels = append(waiters, r.wait(ctx, s)), append(cancels, cancel)
			}
			if newestFirst {
				slices.Reverse(waiters)
				slices.Reverse(cancels)
			}
			for i, cancel := range cancels {
				at := 50*ms + time.Duration(i)*200*time.Microsecond
				r.until(at)
				cancel()
				synctest.Wait()
				assert.Equal(t, context.Canceled, waiters[i].err)
				assert.Equal(t, at, waiters[i].at)
			}
			r.until(70 * ms)
			r.wait(t.Context(), s)
			pass(time.Hour)
			assert.Equal(t, []time.Duration{0, 100 * ms}, r.left())
			conserved(t, s)
		})
	}
}

// Source: golang/go#56924, golang/go#69419.
func TestCaseA02CancellingInTheMiddleMovesFollowersUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10))
		r := newRecorder()
		cancels := make([]context.CancelFunc, 6)
		for i := range cancels {
			var ctx context.Context
			ctx, cancels[i] = context.WithCancel(t.Context())
			defer cancels[i]()
			r.wait(ctx, s)
		}
		r.until(150 * ms)
		cancels[2]()
		cancels[3]()
		pass(time.Hour)
		assert.Equal(t, steps(0, 100*ms, 4), r.left())
	})
}

// Source: dotnet/runtime#77180, dotnet/runtime#90409.
func TestCaseA02CancellingFreesCapacityAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(1), shaper.WithQueue(3))
		r := newRecorder()
		r.wait(t.Context(), s)
		ctx, cancel := context.WithCancel(t.Context())
		r.wait(ctx, s)
		w2 := r.wait(t.Context(), s)
		w3 := r.wait(t.Context(), s)
		assert.ErrorIs(t, w3.err, shaper.ErrQueueFull)
		r.until(100 * ms)
		cancel()
		r.until(110 * ms)
		w4 := r.wait(t.Context(), s)
		r.until(120 * ms)
		assert.EqualValues(t, 2, s.Stats().Waiting)
		pass(time.Hour)
		assert.NoError(t, w2.err)
		assert.Equal(t, time.Second, w2.at)
		assert.NoError(t, w4.err)
		assert.Equal(t, 2*time.Second, w4.at)
		assert.Zero(t, s.Stats().Waiting)
	})
}

// Source: sidekiq/sidekiq#5315.
func TestCaseA04NoStarvation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerMinute(300))
		s.Pause() // until all are there
		start := time.Now()
		const workers = 100
		grants := make([][]time.Duration, workers)
		for i := range workers {
			go func() {
				for {
					asked := time.Now()
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
					err := s.Wait(ctx)
					cancel()
					if t.Context().Err() != nil {
						return
					}
					assert.NoError(t, err)
					assert.LessOrEqual(t, time.Since(asked), 20*time.Second)
					grants[i] = append(grants[i], time.Since(start))
				}
			}()
		}
		pass(0)
		s.Resume()
		pass(time.Minute - 1)
		s.Pause()
		var first time.Duration
		for i := range workers {
			assert.Len(t, grants[i], 3)
			first = max(first, grants[i][0])
		}
		assert.Equal(t, 19800*ms, first, "end of the first round")
	})
}

// Source: golang/time#22, golang/go#52584, golang/go#54541,
// kubernetes-sigs/cli-utils#635, mjpieters/aiolimiter#176.
func TestCaseA06DeadContextTakesNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(1))
		r := newRecorder()
		r.wait(t.Context(), s)
		r.until(10 * ms)
		dead, cancel := context.WithCancel(t.Context())
		cancel()
		first := r.wait(dead, s)
		r.until(20 * ms)
		short, cancel := context.WithTimeout(t.Context(), 300*ms)
		defer cancel()
		second := r.wait(short, s)
		r.until(30 * ms)
		r.wait(t.Context(), s)
		pass(time.Hour)
		assert.Equal(t, context.Canceled, first.err)
		assert.Equal(t, 10*ms, first.at)
		assert.ErrorIs(t, second.err, context.DeadlineExceeded)
		assert.Equal(t, 20*ms, second.at)
		assert.Equal(t, []time.Duration{0, time.Second}, r.left())

		assert.Equal(t, context.Canceled, s.Wait(dead))
		assert.True(t, s.Allow(), "the burst is untouched")
	})
}

// Source: uber-go/ratelimit#119, #106, #122, #90.
func TestCaseB01IdleTimeOpensNoGate(t *testing.T) {
	for _, tt := range []struct {
		burst int
		calls int
		want  []time.Duration
	}{
		{1, 3, steps(30*time.Second, time.Second, 3)},
		{2, 4, []time.Duration{30 * time.Second, 30 * time.Second, 31 * time.Second, 32 * time.Second}},
	} {
		for _, between := range []time.Duration{0, time.Microsecond} {
			synctest.Test(t, func(t *testing.T) {
				s := newShaper(t, scheduler.PerSecond(1), shaper.WithBurst(tt.burst))
				require.NoError(t, s.Wait(t.Context()))
				r := newRecorder()
				r.until(30 * time.Second)
				for i := range tt.calls {
					r.until(30*time.Second + time.Duration(i)*between)
					r.wait(t.Context(), s)
				}
				pass(time.Hour)
				left := r.left()
				for i := range left {
					// A unit of the burst leaves when it comes.
					if left[i] < 30*time.Second+ms {
						left[i] = left[i].Truncate(ms)
					}
				}
				assert.Equal(t, tt.want, left)
			})
		}
	}
}

// Source: animosity22/homescripts#105, boinkor-net/governor#16,
// uber-go/ratelimit#121, OptimalBits/bull#2777.
func TestCaseB02DefaultBurst(t *testing.T) {
	burst := func(t *testing.T, s *shaper.Shaper, calls int) []time.Duration {
		r := newRecorder()
		for range calls {
			r.wait(t.Context(), s)
		}
		pass(time.Hour)
		return r.left()
	}
	within := func(left []time.Duration, end time.Duration) (n int) {
		for _, at := range left {
			if at < end {
				n++
			}
		}
		return n
	}
	synctest.Test(t, func(t *testing.T) {
		left := burst(t, newShaper(t, scheduler.PerSecond(12)), 40)
		assert.Equal(t, 12, within(left, time.Second))
	})
	synctest.Test(t, func(t *testing.T) {
		left := burst(t, newShaper(t, scheduler.PerSecond(12), shaper.WithBurst(12)), 40)
		assert.Equal(t, 23, within(left, time.Second))
		assert.Equal(t, 24, within(left, time.Second+1))
	})
	synctest.Test(t, func(t *testing.T) {
		left := burst(t, newShaper(t, scheduler.PerMinute(1200), shaper.WithQueue(4000)), 4000)
		assert.Len(t, left, 4000)
		assert.Equal(t, 1200, within(left, time.Minute))
	})
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10))
		require.NoError(t, s.Wait(t.Context()))
		pass(2 * time.Second)
		assert.Equal(t, steps(0, 100*ms, 14), burst(t, s, 14))
	})
}

// Source: synnaxlabs/synnax#2788, tokio-rs/tokio#6029, golang/go#37058,
// ai-dynamo/aiperf#1185, ska-sa/spead2#114.
func TestCaseB04LateWakeUpsDoNotAccumulate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(100), shaper.WithClock(lateClock(func() time.Duration { return ms })))
		r := newRecorder()
		for range 1000 {
			r.wait(t.Context(), s)
		}
		pass(time.Minute)
		left := r.left()
		assert.Len(t, left, 1000)
		assert.Equal(t, steps(11*ms, 10*ms, 999), left[1:])
		assert.Equal(t, 9991*ms, left[999])
	})
}

// Source: sindresorhus/p-queue#231, vutran1710/PyrateLimiter#99.
func TestCaseC01ThreePerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(3), shaper.WithQueue(10_801))
		r := newRecorder()
		for range 10_801 {
			r.wait(t.Context(), s)
		}
		pass(2 * time.Hour)
		left := r.left()
		assert.Equal(t, []time.Duration{0, 333333334, 666666667, time.Second}, left[:4])
		assert.Less(t, left[10_799], time.Hour)
		assert.Equal(t, time.Hour, left[10_800])
	})
	// 7/s for a day is in the tests of the scheduler: 604,800 units.
}

// Source: brandur/redis-cell#80, onsigntv/redis-rate-limiter#1.
func TestCaseC02IntervalsBelowAMillisecond(t *testing.T) {
	for _, perSecond := range []int{2000, 1500} {
		synctest.Test(t, func(t *testing.T) {
			s := newShaper(t, scheduler.PerSecond(int64(perSecond)), shaper.WithQueue(perSecond+1))
			r := newRecorder()
			for range perSecond + 1 {
				r.wait(t.Context(), s)
			}
			pass(time.Minute)
			left := r.left()
			assert.Len(t, left, perSecond+1)
			assert.Equal(t, time.Second, left[perSecond])
		})
	}
}

// Source: golang/go#18763, #39984, #47221, #68541, etcd-io/etcd#14212,
// sourcegraph/sourcegraph-public-snapshot#19720, uber-go/ratelimit#74.
func TestCaseC03RateZeroIsNotOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := shaper.New(scheduler.PerSecond(0))
		assert.ErrorContains(t, err, "0/s")
		s := newShaper(t, scheduler.PerSecond(10))
		assert.ErrorContains(t, s.SetRate(scheduler.PerSecond(0)), "0/s")

		s.Pause()
		r := newRecorder()
		var short []*submitted
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 200*ms)
			defer cancel()
			short = append(short, r.wait(ctx, s))
		}
		ctx, cancel := context.WithCancel(t.Context())
		fourth := r.wait(ctx, s)
		r.until(time.Second)
		cancel()
		r.until(time.Minute)
		for _, c := range short {
			assert.ErrorIs(t, c.err, context.DeadlineExceeded)
			assert.LessOrEqual(t, c.at, 200*ms)
		}
		assert.ErrorIs(t, fourth.err, context.Canceled)
		assert.Equal(t, time.Second, fourth.at)
		assert.Empty(t, r.left())

		s.Resume()
		next := r.wait(t.Context(), s)
		assert.True(t, next.ended)
		assert.Equal(t, time.Minute, next.at)
	})
}

// Source: uber-go/ratelimit#74, boinkor-net/governor#203, golang/go#16854,
// zeromicro/go-zero#3695.
func TestCaseC04AbsurdRates(t *testing.T) {
	for _, tt := range []struct {
		rate  scheduler.Rate
		opts  []shaper.Option
		names string
	}{
		{scheduler.PerSecond(0), nil, "0/s"},
		{scheduler.PerSecond(-1), nil, "-1/s"},
		{scheduler.Every(0), nil, "1/0s"},
		{scheduler.Per(5, -time.Second), nil, "5/-1s"},
		{scheduler.PerSecond(1), []shaper.Option{shaper.WithBurst(0)}, "burst 0"},
		{scheduler.PerSecond(1), []shaper.Option{shaper.WithBurst(-1)}, "burst -1"},
	} {
		_, err := shaper.New(tt.rate, tt.opts...)
		assert.ErrorContains(t, err, tt.names)
	}
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(2_000_000_000))
		r := newRecorder()
		for range 1000 {
			assert.NoError(t, s.Wait(t.Context()))
		}
		assert.Less(t, time.Since(r.start), 5*ms)
	})
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.Unlimited, shaper.WithBurst(7))
		r := newRecorder()
		for range 100_000 {
			require.NoError(t, s.Wait(t.Context()))
		}
		assert.Zero(t, time.Since(r.start))

		s = newShaper(t, scheduler.Unlimited)
		for range 100_000 {
			require.NoError(t, s.Wait(t.Context()))
		}
		require.NoError(t, s.SetRate(scheduler.PerSecond(10)))
		for range 3 {
			r.wait(t.Context(), s)
		}
		pass(time.Minute)
		assert.Equal(t, steps(0, 100*ms, 3), r.left())
	})
}

// Source: inngest/inngest#1459, inngest/inngest#1460, xanzy/go-gitlab#1837,
// redisson/redisson#4176, sigmavirus24/rush#18.
func TestCaseC05SlowAndOddQuotas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerDay(5))
		r := newRecorder()
		for range 3 {
			r.wait(t.Context(), s)
		}
		pass(48 * time.Hour)
		assert.Equal(t, steps(0, 17_280*time.Second, 3), r.left())
	})
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerDay(10_000), shaper.WithQueue(10_001))
		r := newRecorder()
		for range 10_001 {
			r.wait(t.Context(), s)
		}
		pass(48 * time.Hour)
		left := r.left()
		assert.Equal(t, 86_391_360*ms, left[9_999])
		assert.Equal(t, 24*time.Hour, left[10_000])
	})
	// A burst that is derived from a low rate must not become a silent 0.
	perSecond := 2
	_, err := shaper.New(scheduler.PerSecond(2), shaper.WithBurst(perSecond/3))
	assert.ErrorContains(t, err, "burst 0")
}

// Source: traefik/traefik#8235, animir/node-rate-limiter-flexible#231,
// hashicorp/go-retryablehttp#297, kubernetes/kubernetes#104554,
// redis/redis#14826.
func TestCaseC06OverflowNeverMeansNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := shaper.New(scheduler.Every(math.MaxInt64))
		assert.ErrorContains(t, err, "takes longer than")
		s := newShaper(t, scheduler.Every(math.MaxInt64-1)) // once in 292 years
		r := newRecorder()
		r.wait(t.Context(), s)
		second := r.wait(t.Context(), s)
		ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
		defer cancel()
		third := r.wait(ctx, s)
		assert.Positive(t, s.Delay())
		require.NoError(t, s.SetRate(scheduler.Every(math.MaxInt64-2)))
		pass(1000 * time.Hour)
		assert.False(t, second.ended)
		assert.ErrorIs(t, third.err, context.DeadlineExceeded)
		assert.LessOrEqual(t, third.at, 150*ms)
		assert.Equal(t, []time.Duration{0}, r.left())
		require.NoError(t, s.Close())
	})
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerDay(1), shaper.WithQueue(200_000))
		require.NoError(t, s.Wait(t.Context()))
		s.Pause() // the line is filled by one call that stands for many
		r := newRecorder()
		r.submit(func() error { return s.WaitN(t.Context(), 199_998) }) // 547 years
		s.Resume()
		late := r.wait(t.Context(), s)
		assert.Equal(t, time.Duration(math.MaxInt64), s.Delay(), "saturated")
		pass(24 * time.Hour) // the big one has left and is paid off now
		pass(1000 * time.Hour)
		assert.False(t, late.ended)
		if strconv.IntSize == 64 { // a cost of 32 bits overflows nothing
			huge := r.submit(func() error { return s.WaitN(t.Context(), math.MaxInt) })
			assert.ErrorIs(t, huge.err, shaper.ErrQueueFull)
		}
		require.NoError(t, s.Close())
	})
}

// Source: juju/ratelimit#4, uburuntu/throttler#2, fujiwara/shapeio#5,
// projectdiscovery/ratelimit#47, aishek/axios-rate-limit#48.
func TestCaseD01RaisingTheRateReachesWaitingCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.Every(2*time.Second))
		r := newRecorder()
		for range 3 {
			r.wait(t.Context(), s)
		}
		r.until(100 * ms)
		require.NoError(t, s.SetRate(scheduler.PerSecond(1000)))
		pass(time.Minute)
		assert.Equal(t, []time.Duration{0, 100*ms + 950*time.Microsecond, 101*ms + 950*time.Microsecond}, r.left())
	})
}

// Source: flyingsquirrel0419/layercache#77, PostHog/posthog-go#258,
// nuonco/nuon#2511.
func TestCaseF04FullQueueDoesNotBypassTheLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10), shaper.WithQueue(5))
		r := newRecorder()
		for range 20 {
			r.wait(t.Context(), s)
		}
		pass(time.Minute)
		assert.Equal(t, steps(0, 100*ms, 5), r.left())
		for _, c := range r.calls[5:] {
			assert.ErrorIs(t, c.err, shaper.ErrQueueFull)
			assert.Zero(t, c.at)
		}
	})
}

// Source: vitessio/vitess#13012, vitessio/vitess#10755, go-pg/pg#29,
// google/oss-rebuild#1401, moonrhythm/parapet#243, theopenlane/core#2004,
// temporalio/temporal#11065.
func TestCaseH01LifeCycle(t *testing.T) {
	before := alive()
	for i := range 2000 {
		s := newShaper(t, scheduler.PerSecond(10))
		require.NoError(t, s.Wait(t.Context()))
		if i%2 == 0 {
			require.NoError(t, s.Close())
			require.NoError(t, s.Close())
			assert.ErrorIs(t, s.Wait(t.Context()), shaper.ErrClosed)
			assert.False(t, s.Allow())
		}
	}
	assert.LessOrEqual(t, alive(), before)
}

// Source: kubernetes/kubernetes#79375, kubernetes/kubernetes#78766,
// hashicorp/vault#14814, hashicorp/nomad#11982, eapache/go-resiliency#36,
// sourcegraph/sourcegraph-public-snapshot#19720.
func TestCaseH02CancelledWaitsLeaveNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waits, rounds = 20_000, 5
		cancelAll := func(s *shaper.Shaper) {
			done := make(chan error, waits)
			ctx, cancel := context.WithCancel(t.Context())
			for range waits {
				go func() { done <- s.Wait(ctx) }()
			}
			pass(ms)
			assert.EqualValues(t, waits, s.Stats().Waiting)
			cancel()
			for range waits {
				assert.ErrorIs(t, <-done, context.Canceled)
			}
			assert.Zero(t, s.Stats().Waiting)
		}
		heap := func() uint64 {
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		busy := func() *shaper.Shaper {
			s := newShaper(t, scheduler.PerHour(1), shaper.WithQueue(2*waits))
			require.NoError(t, s.Wait(t.Context()))
			return s
		}
		// The runtime keeps the goroutines that it made; they are no news later.
		cancelAll(busy())
		s := busy()
		before, goroutines := heap(), alive()
		for range rounds {
			cancelAll(s)
		}
		assert.Less(t, heap(), before+5<<20)
		assert.LessOrEqual(t, alive(), goroutines)

		r := newRecorder()
		for range 1000 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			r.wait(ctx, s)
		}
		r.until(1100 * ms)
		for _, c := range r.calls {
			assert.ErrorIs(t, c.err, context.DeadlineExceeded)
			assert.LessOrEqual(t, c.at, 1100*ms)
		}
	})
}
