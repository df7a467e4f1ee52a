package shaper_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
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

// log returns a limit of so many in any window.
func slidingLog(limit int64, window time.Duration) scheduler.Scheduler {
	return scheduler.Must(scheduler.NewSlidingLog(limit, window))
}

// Sources: target/goalert#1084, XeroAPI/xero-node#262, bluesky-social/atproto#1578,
// rubenlagus/TelegramBots#370, discord/discord-api-docs#1295.
func TestCaseJ04SeveralLimitsForEachNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup[string](t, scheduler.PerMinute(1), shaper.WithSchedules(func(string) (scheduler.Scheduler, error) {
			return scheduler.All(slidingLog(3, 15*time.Minute), slidingLog(5, time.Hour), slidingLog(10, 3*time.Hour)), nil
		}))
		one, other := newRecorder(), newRecorder()
		for range 11 {
			one.submit(func() error { return g.Wait(t.Context(), "+15550100") })
		}
		require.NoError(t, g.HoldUntil("+15550101", time.Now().Add(10*time.Minute)))
		for range 2 {
			other.submit(func() error { return g.Wait(t.Context(), "+15550101") })
		}
		pass(4 * time.Hour)
		var minutes []float64
		for _, at := range one.left() {
			minutes = append(minutes, at.Minutes())
		}
		assert.Equal(t, []float64{0, 1, 2, 15, 16, 60, 61, 62, 75, 76, 180}, minutes)
		assert.Equal(t, []time.Duration{10 * time.Minute, 11 * time.Minute}, other.left())
		assert.Equal(t, 1, g.Len(), "the first number has called within three hours")
		pass(3 * time.Hour)
		assert.Zero(t, g.Len())
	})
}

// TestGroupOfSchedulesIsAShaperForEachKey compares keys with limits of their own with
// Shapers that have the same ones and are never forgotten.
func TestGroupOfSchedulesIsAShaperForEachKey(t *testing.T) {
	trial.Run(t, 300, func(t *testing.T, rng *rand.Rand) {
		synctest.Test(t, func(t *testing.T) {
			const keys = 6
			start := time.Now()
			limitOf := func(key int) (scheduler.Scheduler, error) {
				switch key {
				case 0:
					return scheduler.Must(scheduler.NewFixedWindow(4, 3*time.Second)), nil
				case 1:
					return scheduler.All(slidingLog(3, 2*time.Second), slidingLog(7, 9*time.Second)), nil
				case 2:
					return scheduler.Must(scheduler.NewTokenBucket(scheduler.PerSecond(2), 5)), nil
				case 3:
					return scheduler.Must(scheduler.NewSlidingCounter(4, 4*time.Second)), nil
				case 4:
					return scheduler.All(&quiet{start: start, open: 3 * time.Second, shut: time.Second}, slidingLog(5, 2*time.Second)), nil
				default:
					return scheduler.Must(scheduler.NewLeakyBucket(scheduler.PerSecond(3), 6)), nil
				}
			}
			opts := []shaper.Option{shaper.WithBurst(1 + rng.IntN(4))}
			if rng.IntN(2) == 0 {
				opts = append(opts, shaper.WithClock(sometimesLate{clock.New(), time.Now(), lateness(rng)}))
			}
			g := newGroup[int](t, scheduler.PerSecond(5), append(opts, shaper.WithSchedules(limitOf))...)
			var single [keys]*shaper.Shaper
			for key := range single {
				limit, err := limitOf(key)
				require.NoError(t, err)
				single[key] = newShaper(t, scheduler.PerSecond(5), append(opts, shaper.WithLimits(limit))...)
			}
			ours, theirs := newRecorder(), newRecorder()
			for range 80 {
				if rng.IntN(3) > 0 {
					pass(time.Duration(rng.Int64N(int64(1500 * ms))))
				}
				if rng.IntN(12) == 0 {
					pass(time.Duration(rng.Int64N(int64(15 * time.Second))))
				}
				key := rng.IntN(keys)
				s := single[key]
				switch rng.IntN(12) {
				case 0:
					until := time.Now().Add(time.Duration(rng.Int64N(int64(3 * time.Second))))
					s.HoldUntil(until)
					require.NoError(t, g.HoldUntil(key, until))
				case 1:
					s.Resume()
					g.Resume(key)
				case 2:
					r := scheduler.PerSecond(int64(3 + 2*rng.IntN(2)))
					require.NoError(t, s.SetRate(r))
					require.NoError(t, g.SetRate(key, r))
				case 3:
					s.Charge(2)
					require.NoError(t, g.Charge(key, 2))
				case 4:
					require.Equal(t, s.Delay(), g.Delay(key))
				case 5:
					conservedGroup(t, g)
				case 6, 7:
					require.Equal(t, s.Allow(), g.Allow(key))
				default:
					ctx, cancel := t.Context(), func() {}
					if rng.IntN(3) == 0 {
						ctx, cancel = context.WithTimeout(ctx, time.Duration(rng.Int64N(int64(2*time.Second))))
					}
					t.Cleanup(cancel)
					cost := 1 + rng.IntN(3)
					theirs.submit(func() error { return s.WaitN(ctx, cost) })
					ours.submit(func() error { return g.WaitN(ctx, key, cost) })
				}
			}
			pass(time.Minute)
			for i, want := range theirs.calls {
				got := ours.calls[i]
				require.Equal(t, want.at, got.at, "call %d", i)
				require.Equal(t, fmt.Sprint(want.err), fmt.Sprint(got.err), "call %d", i)
			}
			for key := range single {
				require.NoError(t, g.Refresh(key))
			}
			assert.Zero(t, g.Len())
		})
	})
}

func TestSchedulesThatCannotBeHad(t *testing.T) {
	calls := 0
	errNone := errors.New("no such number")
	g := newGroup[int](t, scheduler.Unlimited, shaper.WithMaxKeys(2), shaper.WithSchedules(func(key int) (scheduler.Scheduler, error) {
		calls++
		switch key {
		case 0:
			return nil, errNone
		case 1:
			return nil, nil
		case 2:
			return &scheduler.GCRA{}, nil
		}
		return slidingLog(1, time.Hour), nil
	}))
	assert.ErrorIs(t, g.Wait(t.Context(), 0), errNone)
	assert.ErrorContains(t, g.Wait(t.Context(), 1), "it is nil")
	assert.ErrorContains(t, g.Wait(t.Context(), 2), "MaxCost is 0")
	assert.Zero(t, g.Len())
	for key := range 5 {
		assert.Equal(t, key == 3 || key == 4, g.Allow(key), "key %d", key)
	}
	assert.ErrorIs(t, g.Wait(t.Context(), 5), shaper.ErrTooManyKeys, "the others owe an hour")
	conservedGroup(t, g)

	_, err := shaper.NewGroup[string](scheduler.Unlimited, shaper.WithSchedules(func(int) (scheduler.Scheduler, error) { return nil, nil }))
	assert.ErrorContains(t, err, "the keys are of type string")
	_, err = shaper.New(scheduler.Unlimited, shaper.WithSchedules(func(int) (scheduler.Scheduler, error) { return nil, nil }))
	assert.ErrorContains(t, err, "only a Group has keys")
}

// silent tells nothing of when it is as good as new.
type silent struct{ scheduler.Scheduler }

func TestScheduleThatDoesNotTellWhenItIsFreshIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup[int](t, scheduler.Unlimited, shaper.WithSchedules(func(int) (scheduler.Scheduler, error) {
			return silent{slidingLog(1, time.Second)}, nil
		}))
		require.True(t, g.Allow(1))
		pass(1000 * time.Hour)
		assert.Equal(t, 1, g.Len())
		assert.True(t, g.Allow(1))
	})
}

// A key that is closed says so before its first call, and is not made by being asked.
func TestDelayOfAKeyThatIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a bubble begins at midnight UTC
		var made atomic.Int64
		g := newGroup[string](t, scheduler.PerSecond(1), shaper.WithSchedules(func(string) (scheduler.Scheduler, error) {
			made.Add(1)
			return scheduler.NewHours(time.UTC, 9*time.Hour, 17*time.Hour)
		}))
		assert.Equal(t, 9*time.Hour, g.Delay("a"))
		assert.Zero(t, g.Len())
		r := newRecorder()
		for range 2 {
			r.submit(func() error { return g.Wait(t.Context(), "a") })
		}
		pass(24 * time.Hour)
		assert.Equal(t, []time.Duration{9 * time.Hour, 9*time.Hour + time.Second}, r.left())
		assert.Zero(t, g.Len(), "hours leave no trace")
		assert.EqualValues(t, 2, made.Load())
	})
}

func TestKeysWithSchedulesAreSavedAndLoaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		daily := shaper.WithSchedules(func(string) (scheduler.Scheduler, error) {
			return scheduler.NewFixedWindow(3, 24*time.Hour)
		})
		g := newGroup[string](t, scheduler.PerHour(60), daily, shaper.WithBurst(3))
		for range 3 {
			require.True(t, g.Allow("a"))
		}
		state, err := g.MarshalBinary()
		require.NoError(t, err)
		pass(6 * time.Hour)
		again := newGroup[string](t, scheduler.PerHour(60), daily, shaper.WithBurst(3))
		require.NoError(t, again.UnmarshalBinary(state))
		assert.False(t, again.Allow("a"))
		assert.Equal(t, 18*time.Hour, again.Delay("a"))
		assert.True(t, again.Allow("b"))
	})
}

// A call whose key is being made when the Group is closed is not found by Close. It must
// not wait on.
func TestCloseWhileAKeyIsMade(t *testing.T) {
	for name, opt := range map[string]func(<-chan struct{}) shaper.Option{
		"schedules": func(goOn <-chan struct{}) shaper.Option {
			return shaper.WithSchedules(func(string) (scheduler.Scheduler, error) {
				<-goOn
				return slidingLog(1, time.Hour), nil
			})
		},
		"rates": func(goOn <-chan struct{}) shaper.Option {
			return shaper.WithRates(func(string) scheduler.Rate { <-goOn; return scheduler.PerHour(1) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				goOn := make(chan struct{})
				g := newGroup[string](t, scheduler.Unlimited, opt(goOn))
				r := newRecorder()
				for range 2 {
					r.submit(func() error { return g.Wait(t.Context(), "a") })
					r.submit(func() error { return g.Acquire(t.Context(), "b", 1) })
				}
				require.NoError(t, g.Close())
				close(goOn)
				synctest.Wait()
				for _, c := range r.calls {
					assert.True(t, c.ended)
					assert.ErrorIs(t, c.err, shaper.ErrClosed)
				}
				conservedGroup(t, g)
				assert.Zero(t, g.Len())
			})
		})
	}
}

// unnotified does something of its own when it is given a function.
type unnotified struct {
	scheduler.Scheduler
	notified func()
}

func (u unnotified) Notify(func()) { u.notified() }

// A schedule is made ready while no lock is held, and one that panics takes no key's place.
func TestScheduleThatPanicsOrUsesTheGroupWhenItIsNotified(t *testing.T) {
	var g *shaper.Group[string]
	notified := func() { panic("no") }
	g = newGroup[string](t, scheduler.Unlimited, shaper.WithMaxKeys(2), shaper.WithSchedules(func(string) (scheduler.Scheduler, error) {
		return unnotified{slidingLog(1, time.Hour), notified}, nil
	}))
	for range 3 {
		assert.PanicsWithValue(t, "no", func() { g.Allow("a") })
	}
	assert.Zero(t, g.Len())
	notified = func() { assert.Zero(t, g.Stats().Keys-1, "its own place is reserved") }
	assert.True(t, g.Allow("a"))
	assert.False(t, g.Allow("a"))
}

// A key that owes more time than a Duration can tell is not forgotten, late as its calls
// may have left.
func TestKeyThatOwesForEverIsRemembered(t *testing.T) {
	for name, opts := range map[string][]shaper.Option{
		"rate": nil,
		"schedule": {shaper.WithSchedules(func(string) (scheduler.Scheduler, error) {
			return scheduler.NewTokenBucket(scheduler.PerHour(1), 100)
		})},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				late := sometimesLate{clock.New(), time.Now(), func(int64) time.Duration { return 2 * ms }}
				g := newGroup[string](t, scheduler.PerSecond(1), append(opts, shaper.WithClock(late))...)
				r := newRecorder()
				for range 2 {
					r.submit(func() error { return g.Wait(t.Context(), "a") })
				}
				pass(1500 * ms)
				require.Equal(t, []time.Duration{0, 1002 * ms}, r.left())
				require.NoError(t, g.Charge("a", math.MaxInt))
				assert.Equal(t, 1, g.Len())
				assert.False(t, g.Allow("a"))
			})
		})
	}
}
