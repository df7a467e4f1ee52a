package shaper_test

import (
	"context"
	"math"
	"math/rand/v2"
	"strconv"
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

func TestStatsTellsTheOldestAndTheNextDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(1), shaper.WithMaxInFlight(1))
		r := newRecorder()
		st := s.Stats()
		assert.Zero(t, st.Oldest)
		assert.Zero(t, st.NextDue)

		require.NoError(t, s.Acquire(t.Context(), 1))
		r.until(200 * ms)
		ctx, cancel := context.WithCancel(t.Context())
		r.wait(ctx, s)
		r.until(700 * ms)
		r.submit(func() error { return s.Acquire(t.Context(), 1) })
		st = s.Stats()
		assert.Equal(t, 500*ms, st.Oldest)
		assert.WithinDuration(t, r.start.Add(time.Second), st.NextDue, 0)

		cancel()
		synctest.Wait()
		st = s.Stats()
		assert.Zero(t, st.Oldest, "the one behind it has come just now")
		assert.Zero(t, st.NextDue, "it waits for a place")
		r.until(3 * time.Second)
		s.Release()
		synctest.Wait()
		assert.EqualValues(t, 2, s.Stats().Left)

		require.NoError(t, s.Close())
	})
}

func TestStatsOfAGroupTellTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup[string](t, scheduler.PerSecond(1))
		r := newRecorder()
		for _, key := range []string{"a", "b"} {
			require.NoError(t, g.Acquire(t.Context(), key, 3))
			r.until(100 * ms)
			r.submit(func() error { return g.Wait(t.Context(), key) })
			r.until(300 * ms)
		}
		st := g.Stats()
		assert.Equal(t, 200*ms, st.Oldest)
		assert.EqualValues(t, 2, st.InFlight)
		assert.EqualValues(t, 6, st.LeftUnits)
		for key, state := range g.Range {
			due := map[string]time.Duration{"a": 3 * time.Second, "b": 3300 * ms}[key]
			assert.WithinDuration(t, r.start.Add(due), state.NextDue, 0)
			assert.EqualValues(t, 1, state.InFlight)
		}
		require.NoError(t, g.Close())
	})
}

// The bucket holds 3: what comes while it is full is lost, while a call waits nothing is,
// and what a gate holds back was not offered.
func TestStatsTellsTheShareOfUnitsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10), shaper.WithBurst(3))
		r := newRecorder()
		check := func(left, unused int64) {
			t.Helper()
			st := s.Stats()
			assert.Equal(t, [2]int64{left, unused}, [2]int64{st.LeftUnits, st.UnusedUnits})
		}
		assert.Zero(t, s.Stats().Used())
		r.until(time.Second)
		check(0, 10)
		require.True(t, s.AllowN(2))
		r.until(2 * time.Second)
		check(2, 18) // it took 200 ms to fill
		require.NoError(t, s.WaitN(t.Context(), 13))
		r.until(3300 * ms)
		check(15, 18)
		s.Pause()
		r.until(5 * time.Second)
		s.Resume()
		r.until(5500 * ms)
		check(15, 23)
		require.NoError(t, s.SetRate(scheduler.PerSecond(100)))
		r.until(6 * time.Second)
		check(15, 73)
		s.HoldUntil(r.start.Add(8 * time.Second))
		r.until(9 * time.Second)
		check(15, 173)
		assert.Equal(t, 15./188, s.Stats().Used())
	})
}

// While a call waits no unit passes unused, however its wait ends.
func TestNoUnitIsUnusedWhileACallWaits(t *testing.T) {
	for name, end := range map[string]func(s *shaper.Shaper, cancel func()){
		"closed":    func(s *shaper.Shaper, _ func()) { _ = s.Close() },
		"cancelled": func(_ *shaper.Shaper, cancel func()) { cancel() },
		"held":      func(s *shaper.Shaper, _ func()) { s.HoldUntil(time.Now().Add(time.Hour)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShaper(t, scheduler.PerSecond(1), shaper.WithMaxInFlight(1))
				r := newRecorder()
				r.acquire(t.Context(), s)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				r.acquire(ctx, s)
				r.until(10 * time.Second)
				end(s, cancel)
				synctest.Wait()
				st := s.Stats()
				assert.Zero(t, st.Waiting)
				assert.Zero(t, st.UnusedUnits)
			})
		})
	}
}

// With a burst of 1 a Shaper that is asked at random has a unit left or unused for each
// interval that has passed, in whatever way calls leave and however often Stats is asked.
func TestUnitsLeftAndUnusedAreAllThereAre(t *testing.T) {
	trial.Run(t, 200, func(t *testing.T, rng *rand.Rand) {
		synctest.Test(t, func(t *testing.T) {
			interval := time.Duration(1 + rng.IntN(1000_000))
			opts := []shaper.Option{shaper.WithQueue(1 << 20)}
			if rng.IntN(2) == 0 {
				opts = append(opts, shaper.WithClock(clock.New())) // always by the lock
			}
			s := newShaper(t, scheduler.Every(interval), opts...)
			start := time.Now()
			for range 100 {
				switch rng.IntN(8) {
				case 0:
					s.Stats()
				case 1:
					go func() { _ = s.WaitN(t.Context(), 1+rng.IntN(5)) }()
				case 2:
					s.Charge(1)
				default:
					s.AllowN(1 + rng.IntN(3))
				}
				synctest.Wait()
				time.Sleep(time.Duration(rng.Int64N(int64(6 * interval))))
			}
			synctest.Wait()
			st := s.Stats()
			owed := max(0, s.Delay())
			offered := float64(time.Since(start)+owed)/float64(interval) - float64(st.Units)
			rounding := 101 * 2 / float64(interval)
			assert.InDelta(t, offered, float64(st.LeftUnits+st.UnusedUnits), 2+rounding)
			require.NoError(t, s.Close())
		})
	})
}

// What is between two units when the rate changes is not lost: a rate that adapts changes
// more often than a unit comes.
func TestUnusedUnitsAcrossRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(1))
		for i := range 7200 {
			time.Sleep(500 * ms)
			require.NoError(t, s.Scale(int64(i%2+1), 2))
		}
		assert.EqualValues(t, 1800+900, s.Stats().UnusedUnits)
		require.NoError(t, s.SetRate(scheduler.Unlimited))
		time.Sleep(time.Hour)
		assert.EqualValues(t, 2700, s.Stats().UnusedUnits)
		require.NoError(t, s.SetRate(scheduler.PerMinute(1)))
		time.Sleep(time.Hour)
		assert.EqualValues(t, 2700+60, s.Stats().UnusedUnits)
	})
}

// Sums of units stay at the largest number.
func TestUnitsDoNotOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.Per(math.MaxInt64, 1))
		time.Sleep(time.Hour)
		assert.EqualValues(t, int64(math.MaxInt64), s.Stats().UnusedUnits)
		require.NoError(t, s.SetRate(scheduler.Per(math.MaxInt64, 2)))
		time.Sleep(time.Hour)
		assert.EqualValues(t, int64(math.MaxInt64), s.Stats().UnusedUnits)
		require.True(t, s.Allow())
		assert.Positive(t, s.Stats().Used())

		g := newGroup[string](t, scheduler.Unlimited, shaper.WithBurst(math.MaxInt))
		s = newShaper(t, scheduler.Unlimited, shaper.WithBurst(math.MaxInt))
		for range 3 {
			require.True(t, s.AllowN(math.MaxInt))
			require.True(t, g.AllowN("a", math.MaxInt))
			s.Charge(math.MaxInt)
			require.NoError(t, g.Charge("b", math.MaxInt))
		}
		most := int64(math.MaxInt)
		if strconv.IntSize == 32 {
			most *= 6 // no sum of so few ints is too large
		}
		assert.Equal(t, most, s.Stats().LeftUnits)
		assert.Equal(t, most, g.Stats().LeftUnits)
		assert.EqualValues(t, 1, s.Stats().Used())
	})
}

// A look at a Shaper while calls leave without the lock shows each sum whole, and no number
// that grows is ever smaller than it was.
func TestStatsNeverGoBack(t *testing.T) {
	s := newShaper(t, scheduler.PerSecond(300_000), shaper.WithBurst(10))
	var stop atomic.Bool
	var racers sync.WaitGroup
	for range 3 {
		racers.Go(func() {
			for !stop.Load() {
				s.Allow()
			}
		})
	}
	var before shaper.Stats
	for range 50_000 {
		st := s.Stats()
		if st.Submitted != st.Left+st.Cancelled+st.Refused+st.Waiting ||
			st.Left < before.Left || st.LeftUnits < before.LeftUnits || st.UnusedUnits < before.UnusedUnits {
			t.Errorf("%+v after %+v", st, before)
			break
		}
		before = st
	}
	stop.Store(true)
	racers.Wait()
}
