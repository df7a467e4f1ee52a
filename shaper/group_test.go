package shaper_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/trial"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

func newGroup[K comparable](t testing.TB, r scheduler.Rate, opts ...shaper.Option) *shaper.Group[K] {
	t.Helper()
	g, err := shaper.NewGroup[K](r, opts...)
	require.NoError(t, err)
	return g
}

func conservedGroup[K comparable](t testing.TB, g *shaper.Group[K]) {
	t.Helper()
	st := g.Stats()
	assert.Equal(t, st.Submitted, st.Left+st.Cancelled+st.Refused+st.Waiting, "%+v", st)
}

// TestGroupIsAShaperForEachKey lets random calls and changes happen to a Group and to
// Shapers of which there is one for each key and which are never forgotten. A caller
// cannot tell which of them it has. More runs: SLUICE_RUNS=300000.
func TestGroupIsAShaperForEachKey(t *testing.T) {
	defer shaper.ForcePrecise()()
	trial.Run(t, 600, func(t *testing.T, rng *rand.Rand) {
		synctest.Test(t, func(t *testing.T) { groupRun(t, rng) })
	})
}

// canceledSoon is the context of a call that does not wait for long.
func canceledSoon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 1)
	t.Cleanup(cancel)
	return ctx
}

// groupRates are the rates of the keys: one for which there are no ticks, one that is
// faster than the tolerance is long, and the usual one.
func groupRate(key int) scheduler.Rate {
	return []scheduler.Rate{
		scheduler.PerSecond(3), scheduler.Per(1<<20+7, time.Hour), scheduler.PerSecond(999_983), scheduler.PerSecond(7),
		scheduler.PerSecond(1000),
	}[key%5]
}

func groupRun(t *testing.T, rng *rand.Rand) {
	const keys = 8
	opts := []shaper.Option{
		shaper.WithBurst(1 + rng.IntN(2)*rng.IntN(6)), shaper.WithQueue([]int{3, 1024}[rng.IntN(2)]),
	}
	switch rng.IntN(4) {
	case 0:
		opts = append(opts, shaper.WithClock(clock.New()))
	case 1, 2:
		opts = append(opts, shaper.WithClock(sometimesLate{clock.New(), time.Now(), lateness(rng)}))
	}
	if rng.IntN(2) == 0 {
		opts = append(opts, shaper.WithPreciseTiming())
	}
	if rng.IntN(2) == 0 {
		opts = append(opts, shaper.WithMaxInFlight(2))
	}
	var inFlight [keys]int
	g := newGroup[int](t, scheduler.PerSecond(7), append(opts, shaper.WithRates(groupRate))...)
	var single [keys]*shaper.Shaper
	for key := range single {
		single[key] = newShaper(t, groupRate(key), opts...)
	}
	ours, theirs := newRecorder(), newRecorder()
	var giveUp []context.CancelFunc
	for range 60 {
		switch rng.IntN(5) {
		case 0:
			pass(time.Duration(rng.Int64N(int64(time.Second))))
		case 1:
			pass(time.Duration(rng.Int64N(3000)))
		case 2:
			if rng.IntN(20) == 0 {
				pass(20 * time.Minute)
			}
		case 3:
			pass(time.Duration(rng.Int64N(int64(10 * ms))))
		}
		key := rng.IntN(keys)
		s := single[key]
		switch rng.IntN(22) {
		case 0:
			r := []scheduler.Rate{groupRate(key), scheduler.PerSecond(5), scheduler.PerSecond(100)}[rng.IntN(3)]
			require.NoError(t, s.SetRate(r))
			require.NoError(t, g.SetRate(key, r))
		case 1:
			s.Pause()
			require.NoError(t, g.Pause(key))
		case 2, 3:
			s.Resume()
			g.Resume(key)
		case 4:
			until := time.Now().Add(time.Duration(rng.Int64N(int64(time.Second))))
			s.HoldUntil(until)
			require.NoError(t, g.HoldUntil(key, until))
		case 5:
			cost := 1 + rng.IntN(2)*rng.IntN(20)
			s.Charge(cost)
			require.NoError(t, g.Charge(key, cost))
		case 6:
			require.Equal(t, s.Allow(), g.Allow(key))
		case 7:
			assert.LessOrEqual(t, g.Len(), keys)
			conservedGroup(t, g)
		case 8:
			require.Equal(t, s.Delay(), g.Delay(key))
		case 9:
			num := int64(1 + rng.IntN(10))
			require.NoError(t, s.Scale(num, 10))
			require.NoError(t, g.Scale(key, num, 10))
		case 10:
			require.Equal(t, s.Allow(), g.LeaveNow(key, 1) || g.Allow(key))
		case 11:
			if len(giveUp) > 0 {
				giveUp[rng.IntN(len(giveUp))]()
			}
		case 12:
			cost := 1 + rng.IntN(8)
			require.Equal(t, s.AllowN(cost), g.AllowN(key, cost))
		case 13:
			if st := s.Stats(); st.InFlight == 0 && st.Waiting == 0 && !st.Paused {
				want, got := s.Acquire(canceledSoon(t), 1), g.Acquire(canceledSoon(t), key, 1)
				require.Equal(t, fmt.Sprint(want), fmt.Sprint(got))
				if want == nil {
					inFlight[key]++
				}
			}
		case 14:
			if inFlight[key] > 0 {
				inFlight[key]--
				s.Release()
				g.Release(key)
			}
		default:
			cost := 1 + rng.IntN(2)*rng.IntN(5)
			if rng.IntN(10) == 0 {
				cost += rng.IntN(30)
			}
			ctx, cancel := context.WithCancel(t.Context())
			if rng.IntN(4) == 0 {
				ctx, cancel = context.WithTimeout(t.Context(), time.Duration(rng.Int64N(int64(time.Second))))
			}
			defer cancel()
			giveUp = append(giveUp, cancel)
			theirs.submit(func() error { return s.WaitN(ctx, cost) })
			ours.submit(func() error { return g.WaitN(ctx, key, cost) })
		}
		synctest.Wait()
	}
	for key, s := range single {
		for range inFlight[key] {
			s.Release()
			g.Release(key)
		}
		s.Resume()
		g.Resume(key)
	}
	pass(time.Hour)
	for i, want := range theirs.calls {
		got := ours.calls[i]
		require.Equal(t, want.ended, got.ended, "call %d", i)
		require.Equal(t, want.at, got.at, "call %d", i)
		require.Equal(t, fmt.Sprint(want.err), fmt.Sprint(got.err), "call %d", i)
	}
	var sum shaper.Stats
	for _, s := range single {
		st := s.Stats()
		sum.Left, sum.Refused, sum.Cancelled = sum.Left+st.Left, sum.Refused+st.Refused, sum.Cancelled+st.Cancelled
	}
	st := g.Stats()
	assert.Equal(t, []int64{sum.Left, sum.Refused, sum.Cancelled}, []int64{st.Left, st.Refused, st.Cancelled})
	for key := range single {
		require.NoError(t, g.SetRate(key, groupRate(key)))
		require.NoError(t, g.Scale(key, 1, 1))
	}
	pass(time.Hour)
	assert.Zero(t, g.Len())
}

// Sources: richardwooding/feed-mcp#117, arumes31/uplarr#126, temporalio/temporal#11065,
// SithumRaigamage/techmeetups#18, luisgamas/uxnan#101. That two spellings of a host are
// one key is a matter of the transport.
func TestCaseH04KeysAreBoundedAndABusyOneIsNeverReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, hosts = 1000, 100_000
		g := newGroup[string](t, scheduler.PerMinute(1), shaper.WithMaxKeys(most))
		start := time.Now()
		require.NoError(t, g.Wait(t.Context(), "X"))
		before := heap()
		for i := range hosts {
			err := g.Wait(t.Context(), fmt.Sprintf("host-%d.example", i))
			if i < most-1 {
				require.NoError(t, err)
				continue
			}
			var refusal *shaper.Refusal
			require.ErrorAs(t, err, &refusal)
			require.ErrorIs(t, err, shaper.ErrTooManyKeys)
		}
		assert.Equal(t, most, g.Len())
		assert.Less(t, heap()-before, int64(most*400), "bytes")
		time.Sleep(30 * time.Second)
		assert.False(t, g.Allow("X"))
		require.NoError(t, g.Wait(t.Context(), "X"))
		assert.Equal(t, time.Minute, time.Since(start))

		// The others owe nothing any more, which makes room.
		assert.NoError(t, g.Wait(t.Context(), "new"))
		assert.Equal(t, 2, g.Len())
		time.Sleep(time.Minute + 1)
		assert.Zero(t, g.Len())
		conservedGroup(t, g)
	})
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A key goes in the nanosecond in which its TAT has passed, and not before.
func TestKeysAreForgottenExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup[string](t, scheduler.PerSecond(3), shaper.WithBurst(2), shaper.WithMaxKeys(1))
		require.True(t, g.Allow("a"))
		require.True(t, g.Allow("a"))
		time.Sleep(666_666_667) // TAT lies in the nanosecond that ends now
		assert.Equal(t, 1, g.Len())
		assert.False(t, g.Allow("b"))
		time.Sleep(time.Nanosecond)
		assert.True(t, g.Allow("b"))
		assert.False(t, g.Allow("a"))
		assert.Equal(t, 1, g.Len())
	})
}

// What a key is told apart by is not forgotten, however long ago it was used.
func TestSpecialKeysAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup[string](t, scheduler.PerSecond(10), shaper.WithMaxKeys(3), shaper.WithBurst(5))
		require.NoError(t, g.Pause("paused"))
		require.NoError(t, g.HoldUntil("held", time.Now().Add(3*time.Hour)))
		require.NoError(t, g.SetRate("slow", scheduler.PerHour(1)))
		time.Sleep(2 * time.Hour)
		assert.ErrorIs(t, g.HoldUntil("other", time.Now().Add(time.Hour)), shaper.ErrTooManyKeys)
		assert.False(t, g.Allow("other"))
		assert.False(t, g.Allow("paused"))
		assert.False(t, g.Allow("held"))

		states := map[string]shaper.KeyState{}
		for key, state := range g.Range {
			states[key] = state
		}
		assert.Len(t, states, 3)
		assert.True(t, states["paused"].Paused)
		assert.Equal(t, time.Hour, time.Until(states["held"].HeldUntil))
		assert.Equal(t, scheduler.PerHour(1), states["slow"].Rate)

		// What was saved up behind a gate stays forfeited for as long as it matters.
		g.Resume("paused")
		time.Sleep(50 * ms)
		assert.Equal(t, 3, g.Len())
		assert.True(t, g.Allow("paused"))
		assert.False(t, g.Allow("paused"))

		require.NoError(t, g.SetRate("slow", scheduler.PerSecond(10)))
		assert.Equal(t, 2, g.Len())
		time.Sleep(2 * time.Hour)
		assert.Zero(t, g.Len())
	})
}

// Callers of few keys race for more keys than there is room for.
func TestGroupConcurrently(t *testing.T) {
	skipWithoutPreemption(t)
	const perSecond = 2000
	g := newGroup[int](t, scheduler.PerSecond(perSecond), shaper.WithMaxKeys(8), shaper.WithTolerance(0))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	const keys = 12
	var left [keys]atomic.Int64
	var all sync.WaitGroup
	for i := range 24 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for ctx.Err() == nil {
				key := rng.IntN(keys)
				mine, giveUp := context.WithTimeout(ctx, time.Duration(rng.Int64N(int64(2*ms))))
				switch rng.IntN(8) {
				case 0:
					if g.Allow(key) {
						left[key].Add(1)
					}
				case 1:
					_ = g.HoldUntil(key, time.Now().Add(50*time.Microsecond))
				case 2:
					g.Resume(key)
				case 3:
					assert.LessOrEqual(t, g.Len(), 8)
				case 4:
					conservedGroup(t, g)
				default:
					err := g.Wait(mine, key)
					if err == nil {
						left[key].Add(1)
					} else if !errors.Is(err, shaper.ErrTooManyKeys) {
						assert.ErrorIs(t, err, context.DeadlineExceeded)
					}
				}
				giveUp()
			}
		})
	}
	all.Wait()
	most := 1 + int64(time.Since(began)/(time.Second/perSecond))
	var sum int64
	for key := range left {
		assert.LessOrEqual(t, left[key].Load(), most, "key %d", key)
		sum += left[key].Load()
	}
	assert.Positive(t, sum)
	assert.Equal(t, sum, g.Stats().Left)
	conservedGroup(t, g)
}

func TestGroupClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup[string](t, scheduler.PerSecond(10))
		r := newRecorder()
		for _, key := range []string{"a", "a", "a", "b", "b"} {
			r.submit(func() error { return g.Wait(t.Context(), key) })
		}
		ctx, cancel := context.WithTimeout(t.Context(), 150*ms)
		defer cancel()
		assert.ErrorIs(t, g.Shutdown(ctx), context.DeadlineExceeded)
		assert.ErrorIs(t, g.Wait(t.Context(), "c"), shaper.ErrClosed)
		assert.False(t, g.Allow("d"))
		require.NoError(t, g.Close())
		require.NoError(t, g.Close())
		synctest.Wait()
		assert.Equal(t, []time.Duration{0, 100 * ms, 0, 100 * ms}, r.left())
		assert.ErrorIs(t, r.calls[2].err, shaper.ErrClosed)
		assert.NoError(t, g.Shutdown(t.Context()))
		conservedGroup(t, g)
	})
}

func TestGroupShutdownDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup[int](t, scheduler.PerSecond(10))
		r := newRecorder()
		for i := range 60 {
			r.submit(func() error { return g.Wait(t.Context(), i%20) })
		}
		require.NoError(t, g.Shutdown(t.Context()))
		assert.Equal(t, 200*ms, time.Since(r.start))
		synctest.Wait()
		assert.Len(t, r.left(), 60)
	})
}

func TestGroupRefusesWhatItCannotServe(t *testing.T) {
	for _, tt := range []struct {
		name string
		opts []shaper.Option
		want string
	}{
		{"no keys", []shaper.Option{shaper.WithMaxKeys(0)}, "maximum of 0 keys"},
		{"other keys", []shaper.Option{shaper.WithRates(func(int) scheduler.Rate { return scheduler.Unlimited })}, "the keys are of type string"},
		{"no rates", []shaper.Option{shaper.WithRates[string](nil)}, "rates by a nil func(string)"},
		{"no schedules", []shaper.Option{shaper.WithSchedules[string](nil)}, "schedules by a nil func(string)"},
		{"no weights", []shaper.Option{shaper.WithWeights[string](nil)}, "weights by a nil func(string)"},
		{"limits", []shaper.Option{shaper.WithLimits(newWindow(t))}, "1 limits"},
		{"burst", []shaper.Option{shaper.WithBurst(0)}, "burst 0"},
	} {
		_, err := shaper.NewGroup[string](scheduler.PerSecond(1), tt.opts...)
		assert.ErrorContains(t, err, tt.want, tt.name)
	}
	_, err := shaper.NewGroup[string](scheduler.PerSecond(0))
	assert.ErrorContains(t, err, "rate 0")
	for name, opt := range map[string]shaper.Option{
		"keys":  shaper.WithMaxKeys(5),
		"rates": shaper.WithRates(func(int) scheduler.Rate { return scheduler.Unlimited }),
	} {
		_, err := shaper.New(scheduler.PerSecond(1), opt)
		assert.ErrorContains(t, err, "only a Group", name)
		_, err = shaper.NewFrom(newWindow(t), opt)
		assert.ErrorContains(t, err, "only a Group", name)
	}

	g := newGroup[float64](t, scheduler.PerSecond(1), shaper.WithRates(func(key float64) scheduler.Rate {
		return scheduler.PerSecond(int64(key))
	}))
	assert.ErrorContains(t, g.Wait(t.Context(), -1), "rate -1")
	assert.ErrorContains(t, g.HoldUntil(-1, time.Now().Add(time.Hour)), "rate -1")
	assert.ErrorContains(t, newGroup[float64](t, scheduler.PerSecond(1)).Wait(t.Context(), math.NaN()), "differs from itself")
	assert.ErrorIs(t, g.WaitN(t.Context(), 5, 0), shaper.ErrCost)
	assert.Error(t, g.SetRate(5, scheduler.PerSecond(0)))
	dead, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Equal(t, context.Canceled, g.Wait(dead, 7))
	assert.Zero(t, g.Len())
	assert.Zero(t, g.Delay(8))
	g.Resume(8)
	assert.Zero(t, g.Len())
	conservedGroup(t, g)
}

func newWindow(t testing.TB) scheduler.Scheduler {
	w, err := scheduler.NewSlidingLog(5, time.Minute)
	require.NoError(t, err)
	return w
}

// A caller alone that is woken late gets the rate of its key, too.
func TestOneCallerGetsTheRateOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := lateClock(func() time.Duration { return ms })
		g := newGroup[string](t, scheduler.PerSecond(10_000), shaper.WithClock(late))
		began := time.Now()
		for range 10_001 {
			require.NoError(t, g.Wait(t.Context(), "key"))
		}
		assert.InDelta(t, float64(time.Second), float64(time.Since(began)), float64(ms))
	})
}

func TestGroupDecidesWithoutAllocations(t *testing.T) {
	g := newGroup[string](t, ready, shaper.WithBurst(1_000_000))
	keys := []string{"a", "b", "c"}
	i := 0
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		if err := g.Wait(t.Context(), keys[i%3]); err != nil {
			t.Fatal(err)
		}
		i++
	}))
}

func BenchmarkGroupReady(b *testing.B) {
	const keys = 1 << 20
	g := newGroup[string](b, scheduler.PerHour(1_000_000), shaper.WithBurst(1_000_000), shaper.WithMaxKeys(2*keys))
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprintf("key-%d", i)
		if err := g.Wait(b.Context(), names[i]); err != nil {
			b.Fatal(err)
		}
	}
	ctx := b.Context()
	rng := rand.New(rand.NewPCG(1, 2))
	b.ReportAllocs()
	for b.Loop() {
		if err := g.Wait(ctx, names[rng.IntN(keys)]); err != nil {
			b.Fatal(err)
		}
	}
}
