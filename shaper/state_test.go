package shaper_test

import (
	"context"
	"encoding"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/codec"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

type stater interface {
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

func saved(t testing.TB, from stater) []byte {
	t.Helper()
	data, err := from.MarshalBinary()
	require.NoError(t, err)
	return data
}

func load(t testing.TB, into, from stater) {
	t.Helper()
	require.NoError(t, into.UnmarshalBinary(saved(t, from)))
}

// A way to make a Shaper.
func randomShaper(r *rand.Rand) func() *shaper.Shaper {
	rates := []scheduler.Rate{
		scheduler.PerSecond(3), scheduler.Per(7, 13*time.Second), scheduler.PerDay(5), scheduler.PerMinute(60), scheduler.Unlimited,
	}
	rate, burst := rates[r.IntN(len(rates))], r.IntN(5)+1
	limits, from := r.IntN(3), r.IntN(5)
	return func() *shaper.Shaper {
		var more []scheduler.Scheduler
		if limits > 0 {
			more = append(more, scheduler.Must(scheduler.NewFixedWindow(20, time.Minute)))
		}
		if limits > 1 {
			more = append(more, scheduler.Must(scheduler.NewSlidingLog(30, 2*time.Minute)), scheduler.Must(scheduler.NewGCRA(scheduler.PerSecond(2), 3)))
		}
		switch from {
		case 0:
			return shaper.MustNewFrom(scheduler.Must(scheduler.NewTokenBucket(scheduler.PerSecond(3), int64(burst))), shaper.WithLimits(more...))
		case 1:
			return shaper.MustNewFrom(scheduler.Must(scheduler.NewSlidingCounter(9, time.Minute)), shaper.WithLimits(more...))
		}
		return shaper.MustNew(rate, shaper.WithBurst(burst), shaper.WithLimits(more...))
	}
}

// keyed has the methods of a Shaper for one key.
type keyed struct {
	*shaper.Group[string]
	key string
}

func (k keyed) AllowN(n int) bool              { return k.Group.AllowN(k.key, n) }
func (k keyed) Charge(n int)                   { _ = k.Group.Charge(k.key, n) }
func (k keyed) HoldUntil(t time.Time)          { _ = k.Group.HoldUntil(k.key, t) }
func (k keyed) Pause()                         { _ = k.Group.Pause(k.key) }
func (k keyed) Resume()                        { k.Group.Resume(k.key) }
func (k keyed) SetRate(r scheduler.Rate) error { return k.Group.SetRate(k.key, r) }
func (k keyed) Scale(num, den int64) error     { return k.Group.Scale(k.key, num, den) }
func (k keyed) Delay() time.Duration           { return k.Group.Delay(k.key) }

type limited interface {
	AllowN(int) bool
	Charge(int)
	HoldUntil(time.Time)
	Pause()
	Resume()
	SetRate(scheduler.Rate) error
	Scale(num, den int64) error
	Delay() time.Duration
}

// step does the same to each of them, and checks that they answer alike.
func step(t *testing.T, r *rand.Rand, all ...limited) {
	t.Helper()
	n, wait := r.IntN(3)+1, time.Duration(r.Int64N(int64(5*time.Second)))
	rates := []scheduler.Rate{scheduler.PerSecond(5), scheduler.Per(2, 7*time.Second), scheduler.Unlimited}
	rate, what := rates[r.IntN(len(rates))], r.IntN(20)
	var answers, delays []any
	for _, s := range all {
		var answer any
		switch what {
		case 0:
			s.Charge(n)
		case 1:
			s.HoldUntil(time.Now().Add(wait))
		case 2:
			s.Pause()
		case 3, 4:
			s.Resume()
		case 5:
			answer = fmt.Sprint(s.SetRate(rate))
		case 6:
			answer = fmt.Sprint(s.Scale(int64(n), 3))
		default:
			answer = s.AllowN(n)
		}
		answers, delays = append(answers, answer), append(delays, s.Delay())
	}
	for i := range all {
		require.Equal(t, answers[0], answers[i])
		require.Equal(t, delays[0], delays[i])
	}
	if what > 3 {
		time.Sleep(wait / time.Duration(n*n))
	}
}

// A Shaper that was saved and loaded into a fresh one decides as the one that went on.
func TestLoadedDecidesAsTheOneThatWentOn(t *testing.T) {
	for seed := range uint64(400) {
		if !t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 7))
				fresh := randomShaper(r)
				went := fresh()
				for range r.IntN(40) {
					step(t, r, went)
				}
				data := saved(t, went)
				time.Sleep(time.Duration(r.Int64N(int64(3 * time.Second))))
				loaded := fresh()
				require.NoError(t, loaded.UnmarshalBinary(data))
				for range 40 {
					step(t, r, went, loaded)
				}
				require.Equal(t, went.Stats().Rate, loaded.Stats().Rate)
			})
		}) {
			return
		}
	}
}

// So does each key of a Group, idle or bound, and with a rate of its own.
func TestLoadedGroupDecidesAsTheOneThatWentOn(t *testing.T) {
	for seed := range uint64(6) {
		if !t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 8))
				const keys = 300
				fresh := func() *shaper.Group[string] {
					return shaper.MustNewGroup[string](scheduler.PerMinute(3), shaper.WithBurst(3), shaper.WithRates(func(key string) scheduler.Rate {
						return scheduler.PerMinute(int64(len(key)))
					}))
				}
				key := func(i int) string { return fmt.Sprint(i) }
				went := fresh()
				for range 10 * keys {
					step(t, r, keyed{went, key(r.IntN(keys))})
				}
				data := saved(t, went)
				loaded := fresh()
				require.NoError(t, loaded.UnmarshalBinary(data))
				require.Equal(t, went.Len(), loaded.Len())
				for i := range keys {
					require.Equal(t, went.Delay(key(i)), loaded.Delay(key(i)))
				}
				for range 10 * keys {
					k := key(r.IntN(keys))
					step(t, r, keyed{went, k}, keyed{loaded, k})
				}
			})
		}) {
			return
		}
	}
}

// What was spent stays spent, though TAT of a Shaper in use is in a word of its own.
func TestSpentQuotaStaysSpent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fresh := func() *shaper.Shaper { return newShaper(t, scheduler.PerDay(5), shaper.WithBurst(5)) }
		s := fresh()
		for range 5 {
			require.True(t, s.Allow())
		}
		loaded := fresh()
		load(t, loaded, s)
		assert.False(t, loaded.Allow())
		assert.Equal(t, scheduler.PerDay(5).Interval(), loaded.Delay())
		pass(scheduler.PerDay(5).Interval())
		assert.True(t, loaded.Allow())
		assert.False(t, loaded.Allow())
	})
}

// The state may be taken while calls leave; it holds what had left by then.
func TestSavedWhileInUse(t *testing.T) {
	fresh := func() *shaper.Shaper {
		return newShaper(t, scheduler.Unlimited, shaper.WithLimits(scheduler.Must(scheduler.NewSlidingLog(2000, time.Hour))))
	}
	s := fresh()
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for range 250 {
				assert.True(t, s.Allow())
			}
		})
	}
	for range 50 {
		before := s.Stats().Left
		data := saved(t, s)
		after := s.Stats().Left
		loaded := fresh()
		require.NoError(t, loaded.UnmarshalBinary(data))
		assert.True(t, loaded.AllowN(int(2000-after)))
		assert.False(t, loaded.AllowN(int(after-before)+1))
	}
	callers.Wait()
}

// Limits that were changed in the code since then hold, and what was owed stays owed.
func TestLoadedIntoOtherLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		window := func(n int64) shaper.Option {
			return shaper.WithLimits(scheduler.Must(scheduler.NewFixedWindow(n, time.Hour)), scheduler.Must(scheduler.NewLeakyBucket(scheduler.PerSecond(n), n)))
		}
		s := newShaper(t, scheduler.PerMinute(1), shaper.WithBurst(2), window(3))
		require.True(t, s.AllowN(2))
		require.NoError(t, s.SetRate(scheduler.PerMinute(30)))
		require.NoError(t, s.Scale(1, 2))

		same := newShaper(t, scheduler.PerMinute(1), shaper.WithBurst(2), window(3))
		load(t, same, s)
		assert.Equal(t, scheduler.PerMinute(15).Cmp(same.Stats().Rate), 0, "as it was set")
		assert.Equal(t, 4*time.Second, same.Delay())

		other := newShaper(t, scheduler.PerMinute(10), shaper.WithBurst(3), window(8))
		load(t, other, s)
		assert.Zero(t, scheduler.PerMinute(5).Cmp(other.Stats().Rate), "a half of what it was made with")
		assert.Zero(t, other.Delay(), "two of three owed")
		require.True(t, other.Allow())
		assert.Equal(t, 12*time.Second, other.Delay())
		pass(time.Minute)
		assert.True(t, other.AllowN(3))
		pass(time.Minute)
		assert.True(t, other.AllowN(2), "the eighth of the window")
		pass(time.Minute)
		assert.False(t, other.Allow())
	})
}

// What is missing in a bucket stays missing when its size changes.
func TestLoadedIntoABucketOfAnotherSize(t *testing.T) {
	for name, made := range map[string]func(size int64) scheduler.Scheduler{
		"token": func(size int64) scheduler.Scheduler {
			return scheduler.Must(scheduler.NewTokenBucket(scheduler.PerHour(1), size))
		},
		"leaky": func(size int64) scheduler.Scheduler {
			return scheduler.Must(scheduler.NewLeakyBucket(scheduler.PerHour(1), size))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := shaper.MustNewFrom(made(20))
				require.True(t, s.AllowN(3))
				larger, smaller, tiny := shaper.MustNewFrom(made(30)), shaper.MustNewFrom(made(5)), shaper.MustNewFrom(made(2))
				for _, loaded := range []*shaper.Shaper{larger, smaller, tiny} {
					load(t, loaded, s)
				}
				assert.False(t, larger.AllowN(28))
				assert.True(t, larger.AllowN(27))
				assert.False(t, smaller.AllowN(3))
				assert.True(t, smaller.AllowN(2))
				assert.Equal(t, 2*time.Hour, tiny.Delay(), "one more is owed than it holds")
				pass(2 * time.Hour)
				assert.True(t, tiny.Allow())
				assert.False(t, tiny.Allow())
			})
		})
	}
}

// A state says what has left in windows that are others now, and when hours were open; it
// must not bring these back.
func TestStateOfOtherWindowsIsRefused(t *testing.T) {
	window := func(length time.Duration, opts ...scheduler.FixedWindowOption) scheduler.Scheduler {
		return scheduler.Must(scheduler.NewFixedWindow(5, length, opts...))
	}
	hours := func(to time.Duration) scheduler.Scheduler {
		return scheduler.Must(scheduler.NewHours(time.UTC, 0, to))
	}
	for _, tt := range []struct {
		from, into scheduler.Scheduler
		want       string
	}{
		{window(time.Hour), window(day), "a *scheduler.FixedWindow has windows of 1h0m0s, want windows of 24h0m0s"},
		{
			window(day, scheduler.WithDayStart(time.Hour)), window(day, scheduler.WithDayStart(5*time.Hour)),
			"a *scheduler.FixedWindow has windows of 24h0m0s in UTC, day start 1h0m0s, want windows of 24h0m0s in UTC, day start 5h0m0s",
		},
		{
			scheduler.Must(scheduler.NewSlidingLog(5, time.Hour)), scheduler.Must(scheduler.NewSlidingLog(5, time.Minute)),
			"a *scheduler.SlidingLog has a window of 1h0m0s, want a window of 1m0s",
		},
		{
			scheduler.Must(scheduler.NewSlidingCounter(5, time.Hour)), scheduler.Must(scheduler.NewSlidingCounter(5, time.Minute)),
			"a *scheduler.SlidingCounter has a window of 1h0m0s, want a window of 1m0s",
		},
		{hours(time.Hour), hours(2 * time.Hour), "a *scheduler.Hours has hours from 0s to 1h0m0s in UTC, want hours from 0s to 2h0m0s in UTC"},
	} {
		synctest.Test(t, func(t *testing.T) {
			into := newShaper(t, scheduler.PerSecond(1), shaper.WithLimits(tt.into))
			before := saved(t, into)
			from := newShaper(t, scheduler.PerSecond(1), shaper.WithLimits(tt.from))
			assert.EqualError(t, into.UnmarshalBinary(saved(t, from)), "shaper: state: "+tt.want)
			assert.Equal(t, before, saved(t, into))
		})
	}
}

// It is the same for the limits in All, each of which has its own state.
func TestLoadedIntoAllOfOtherLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fresh := func(n int64) *shaper.Shaper {
			pacer := scheduler.Must(scheduler.NewGCRA(scheduler.PerSecond(n), n))
			window := scheduler.Must(scheduler.NewFixedWindow(n, time.Hour))
			return shaper.MustNewFrom(scheduler.All(scheduler.All(window), scheduler.All(), pacer))
		}
		s := fresh(9)
		require.True(t, s.AllowN(2))
		loaded := fresh(5)
		load(t, loaded, s)
		assert.Equal(t, scheduler.PerSecond(5), loaded.Stats().Rate)
		assert.False(t, loaded.AllowN(4))
		assert.True(t, loaded.AllowN(3))
		pass(time.Minute)
		assert.False(t, loaded.Allow())
	})
}

// What is owed after a call of a large cost counts as one waiting call, in a loaded line
// as in the other one.
func TestLoadedLineHasAsMuchRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, loaded := newShaper(t, scheduler.PerSecond(100), shaper.WithQueue(100)), newShaper(t, scheduler.PerSecond(100), shaper.WithQueue(100))
		require.True(t, s.AllowN(500))
		load(t, loaded, s)
		assert.NoError(t, loaded.Wait(t.Context()))

		idle, bound := newGroup[string](t, scheduler.PerSecond(100), shaper.WithQueue(100)), newGroup[string](t, scheduler.PerSecond(100), shaper.WithQueue(100))
		require.True(t, idle.AllowN("a", 500))
		load(t, bound, idle)
		require.NoError(t, bound.Pause("a"))
		load(t, idle, bound)
		idle.Resume("a")
		assert.NoError(t, idle.Wait(t.Context(), "a"))
	})
}

// Calls that wait when a state is loaded go by it.
func TestLoadedWhileCallsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := newShaper(t, scheduler.PerSecond(1))
		held.HoldUntil(time.Now().Add(time.Minute))
		s := newShaper(t, scheduler.PerHour(1))
		require.True(t, s.Allow())
		rec := newRecorder()
		rec.wait(t.Context(), s)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
		defer cancel()
		rec.wait(ctx, s)
		load(t, s, held)
		synctest.Wait()
		rec.until(90 * time.Minute)
		assert.Equal(t, []time.Duration{time.Minute, time.Hour + time.Minute}, rec.left())
		conserved(t, s)
	})
}

// A step of the clock during the life of a process is no time that has passed.
func TestSavedAfterTheClockWasSet(t *testing.T) {
	every := map[string]func() scheduler.Scheduler{
		"GCRA":  func() scheduler.Scheduler { return scheduler.Must(scheduler.NewGCRA(scheduler.PerMinute(1), 1)) },
		"token": func() scheduler.Scheduler { return scheduler.Must(scheduler.NewTokenBucket(scheduler.PerMinute(1), 1)) },
		"leaky": func() scheduler.Scheduler { return scheduler.Must(scheduler.NewLeakyBucket(scheduler.PerMinute(1), 1)) },
		"log":   func() scheduler.Scheduler { return scheduler.Must(scheduler.NewSlidingLog(1, time.Minute)) },
	}
	every["all"] = func() scheduler.Scheduler { return scheduler.All(every["token"](), every["GCRA"]()) }
	for name, schedule := range every {
		for _, by := range []time.Duration{time.Hour, -time.Hour} {
			t.Run(fmt.Sprint(name, by), func(t *testing.T) {
				mock := clock.NewMock()
				mock.Set(time.Unix(1e9, 0))
				fresh := func() *shaper.Shaper { return shaper.MustNewFrom(schedule(), shaper.WithClock(mock)) }
				s := fresh()
				mock.Set(mock.Now().Add(by))
				load(t, fresh(), s) // nothing has left, and nothing is owed
				untouched := fresh()
				load(t, untouched, s)
				load(t, fresh(), untouched)
				require.True(t, untouched.Allow())

				require.True(t, s.Allow())
				loaded := fresh()
				load(t, loaded, s)
				assert.Equal(t, time.Minute, loaded.Delay())
				s.HoldUntil(mock.Now().Add(2 * time.Minute))
				load(t, loaded, s)
				assert.Equal(t, 2*time.Minute, loaded.Delay())
				assert.Equal(t, mock.Now().Add(2*time.Minute), loaded.Stats().HeldUntil)
				loaded.Resume()
				mock.Add(time.Minute)
				assert.True(t, loaded.Allow())
			})
		}
	}
}

type opaque struct{ scheduler.Scheduler }

func TestWhatCannotBeSaved(t *testing.T) {
	s := shaper.MustNewFrom(opaque{scheduler.All()})
	const because = " cannot be saved: it must be an encoding.BinaryMarshaler and BinaryUnmarshaler"
	_, err := s.MarshalBinary()
	assert.EqualError(t, err, "shaper: state: a shaper_test.opaque"+because)
	s = shaper.MustNew(scheduler.PerSecond(1), shaper.WithLimits(scheduler.All(), opaque{scheduler.All()}))
	_, err = s.MarshalBinary()
	assert.EqualError(t, err, "shaper: state: a shaper_test.opaque"+because)

	g := shaper.MustNewGroup[[2]bool](scheduler.PerSecond(1))
	_, err = g.MarshalBinary()
	assert.EqualError(t, err, "shaper: state: keys of type [2]bool cannot be saved: they must be strings, integers, or have MarshalText and UnmarshalText")
	_, err = shaper.MustNewGroup[any](scheduler.PerSecond(1)).MarshalBinary()
	assert.ErrorContains(t, err, "keys of type interface {}")
	assert.ErrorContains(t, shaper.MustNewGroup[*netip.Addr](scheduler.PerSecond(1)).UnmarshalBinary(nil), "keys of type *netip.Addr")
	blurred := shaper.MustNewGroup[blurred](scheduler.PerSecond(1))
	require.True(t, blurred.Allow(7.5))
	_, err = blurred.MarshalBinary()
	assert.EqualError(t, err, "shaper: state: key 1 of 1: its text is read as another key")
}

// blurred is a key whose text loses something.
type blurred float64

func (b blurred) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%.0f", float64(b)), nil }
func (b *blurred) UnmarshalText(text []byte) error {
	_, err := fmt.Sscan(string(text), (*float64)(b))
	return err
}

// token is a key whose own errors tell it.
type token struct{ secret string }

func (k token) MarshalText() ([]byte, error) {
	if k.secret == "" {
		return nil, fmt.Errorf("no text for %+v", k)
	}
	return []byte(k.secret), nil
}

func (k *token) UnmarshalText(text []byte) error {
	if text[0] != 't' {
		return fmt.Errorf("%q is no token", text)
	}
	k.secret = string(text)
	return nil
}

// A key may be a secret, and no error of a state tells it.
func TestErrorsOfStatesTellNoKey(t *testing.T) {
	g := shaper.MustNewGroup[token](scheduler.PerHour(1))
	other := shaper.MustNewGroup[string](scheduler.PerHour(1))
	require.True(t, other.Allow("hunter2"))
	assert.EqualError(t, g.UnmarshalBinary(saved(t, other)), "shaper: state: key 1: it is no key of this type")
	require.True(t, g.Allow(token{"t-1"}))
	load(t, shaper.MustNewGroup[token](scheduler.PerHour(1)), g)
	require.True(t, g.Allow(token{}))
	_, err := g.MarshalBinary()
	assert.Regexp(t, `^shaper: state: key \d of 2: its MarshalText fails$`, err)
}

func TestKeysAreSaved(t *testing.T) {
	type name string
	keysAreSaved(t, "", "a", "\x00\xff")
	keysAreSaved(t, name("a"))
	keysAreSaved[int8](t, -128, 0, 127)
	keysAreSaved[uint64](t, 0, 1<<64-1)
	keysAreSaved(t, netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1"))
	keysAreSaved(t, blurred(7), blurred(-3))

	wide := shaper.MustNewGroup[int](scheduler.PerHour(1))
	require.True(t, wide.Allow(300))
	narrow := shaper.MustNewGroup[int8](scheduler.PerHour(1))
	assert.ErrorContains(t, narrow.UnmarshalBinary(saved(t, wide)), "it is no key of this type")
	assert.ErrorContains(t, shaper.MustNewGroup[uint8](scheduler.PerHour(1)).UnmarshalBinary(saved(t, wide)), "it is no key of this type")
	assert.ErrorContains(t, shaper.MustNewGroup[netip.Addr](scheduler.PerHour(1)).UnmarshalBinary(saved(t, wide)), "shaper: state: key")
}

func keysAreSaved[K comparable](t *testing.T, keys ...K) {
	t.Helper()
	g := shaper.MustNewGroup[K](scheduler.PerHour(1))
	for _, key := range keys {
		require.True(t, g.Allow(key))
	}
	loaded := shaper.MustNewGroup[K](scheduler.PerHour(1))
	load(t, loaded, g)
	assert.Equal(t, len(keys), loaded.Len())
	for _, key := range keys {
		assert.False(t, loaded.Allow(key), "%v", key)
	}
}

// An error of a Group changes no key.
func TestGroupLoadsAllOrNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := shaper.MustNewGroup[int](scheduler.PerHour(1), shaper.WithBurst(9))
		for key := range 20 {
			require.True(t, from.AllowN(key, 5))
		}
		require.NoError(t, from.Pause(7))
		into := shaper.MustNewGroup[int](scheduler.PerHour(1), shaper.WithBurst(9), shaper.WithMaxKeys(10))
		for key := range 5 {
			require.True(t, into.AllowN(key, 8))
		}
		err := into.UnmarshalBinary(saved(t, from))
		require.ErrorIs(t, err, shaper.ErrTooManyKeys)
		assert.Regexp(t, `^shaper: state: key \d+ of 20: `, err.Error())
		assert.Equal(t, 5, into.Len())
		for key := range 5 {
			assert.True(t, into.Allow(key))
			assert.False(t, into.Allow(key))
		}

		failing := shaper.MustNewGroup[int](scheduler.PerHour(1), shaper.WithRates(func(key int) scheduler.Rate {
			return scheduler.PerHour(int64(key) - 3)
		}))
		assert.ErrorContains(t, failing.UnmarshalBinary(saved(t, from)), "from the function for rates")
		assert.Zero(t, failing.Len())
	})
}

// Damaged bytes are refused, whatever is damaged, and change nothing.
func TestDamagedStatesAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shaper.MustNew(scheduler.PerSecond(3), shaper.WithLimits(scheduler.Must(scheduler.NewFixedWindow(9, time.Hour))))
		require.True(t, s.Allow())
		s.HoldUntil(time.Now().Add(time.Hour))
		require.NoError(t, s.SetRate(scheduler.PerMinute(7)))
		refuses(t, s, saved(t, s))

		g := shaper.MustNewGroup[string](scheduler.PerSecond(3))
		require.True(t, g.Allow("a"))
		require.NoError(t, g.Pause("b"))
		damaged := saved(t, g)
		refuses(t, g, damaged)

		assert.ErrorContains(t, s.UnmarshalBinary(damaged), `it is of kind 'K', want 'P'`)
		one := shaper.MustNew(scheduler.PerSecond(3))
		assert.EqualError(t, one.UnmarshalBinary(saved(t, s)), "shaper: state: it is of 2 limits, want 1")
		window := shaper.MustNewFrom(scheduler.Must(scheduler.NewFixedWindow(9, time.Hour)))
		assert.ErrorContains(t, window.UnmarshalBinary(saved(t, one)), `it is of kind 'G', want 'F'`)
		assert.True(t, window.AllowN(9))
	})
}

// If one limit refuses its state, the others have theirs back.
func TestShaperLoadsAllOrNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fresh := func(last scheduler.Scheduler) *shaper.Shaper {
			return shaper.MustNew(scheduler.PerHour(1), shaper.WithBurst(9), shaper.WithLimits(
				scheduler.Must(scheduler.NewFixedWindow(9, time.Hour)), scheduler.Must(scheduler.NewTokenBucket(scheduler.PerHour(1), 9)), last))
		}
		s := fresh(scheduler.Must(scheduler.NewFixedWindow(9, time.Hour)))
		require.True(t, s.AllowN(2))
		other := fresh(scheduler.Must(scheduler.NewSlidingLog(9, time.Hour)))
		require.True(t, other.AllowN(7))
		other.Pause()
		require.NoError(t, other.Scale(1, 2))

		before := saved(t, s)
		require.EqualError(t, s.UnmarshalBinary(saved(t, other)), "shaper: state: scheduler: state: it is of kind 'S', want 'F'")
		assert.Equal(t, before, saved(t, s))
		assert.True(t, s.AllowN(7))
	})
}

// refuses checks that no byte of the state can be changed or left out.
func refuses(t *testing.T, s stater, data []byte) {
	t.Helper()
	bounds := len(data)
	for i := range bounds {
		bad := append([]byte(nil), data...)
		bad[i] ^= 1 << (i % 8)
		require.Error(t, s.UnmarshalBinary(bad), i)
		require.Error(t, s.UnmarshalBinary(data[:i]), i)
	}
	require.Error(t, s.UnmarshalBinary(append(data, 0)))
	require.NoError(t, s.UnmarshalBinary(data))
	require.Len(t, saved(t, s), bounds)
}

// Whatever stands in a state with a right checksum, it is loaded as a whole or refused.
func FuzzUnmarshal(f *testing.F) {
	fields := func(s stater) []byte {
		data, err := s.MarshalBinary()
		require.NoError(f, err)
		return data[2 : len(data)-4]
	}
	fresh := func() (*shaper.Shaper, *shaper.Group[string]) {
		return shaper.MustNew(scheduler.PerSecond(3), shaper.WithLimits(scheduler.Must(scheduler.NewFixedWindow(9, time.Hour)))),
			shaper.MustNewGroup[string](scheduler.PerSecond(3), shaper.WithMaxKeys(3))
	}
	s, g := fresh()
	f.Add(fields(s))
	f.Add(fields(g))
	s.HoldUntil(time.Now().Add(time.Hour))
	require.NoError(f, s.Scale(1, 3))
	require.True(f, g.Allow("a"))
	require.NoError(f, g.Pause("b"))
	f.Add(fields(s))
	f.Add(fields(g))
	f.Fuzz(func(t *testing.T, payload []byte) {
		s, g := fresh()
		for kind, into := range map[byte]stater{'P': s, 'K': g} {
			e := codec.Encode(kind)
			e.Raw(payload)
			data, _ := e.Finish()
			if err := into.UnmarshalBinary(data); err != nil {
				continue
			}
			require.NotEmpty(t, saved(t, into))
			s.Delay()
			g.Delay("a")
		}
	})
}

// TestCaseK15RestartLoop: processes that live for three seconds and send one call in ten
// (resilience4j/resilience4j#2069, jhurliman/node-rate-limiter#34, bencherdev/bencher#1004).
func TestCaseK15RestartLoop(t *testing.T) {
	for _, held := range []bool{false, true} {
		for _, killed := range []bool{false, true} {
			t.Run(fmt.Sprintf("held=%v killed=%v", held, killed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { restartLoop(t, held, killed) })
			})
		}
	}
}

func restartLoop(t *testing.T, held, killed bool) {
	const life = 2990 * ms
	start := time.Now()
	var file []byte // what is on the disk
	var left []time.Duration
	for range 20 {
		func() {
			s := newShaper(t, scheduler.Every(10*time.Second))
			if file != nil {
				require.NoError(t, s.UnmarshalBinary(file))
			}
			ctx, cancel := context.WithTimeout(t.Context(), life)
			defer cancel()
			for range 5 {
				var callers sync.WaitGroup
				callers.Go(func() {
					if s.Wait(ctx) == nil {
						left = append(left, time.Since(start))
						if held && len(left) == 1 {
							s.HoldUntil(start.Add(36 * time.Second).Truncate(time.Second))
						}
						file = saved(t, s)
					}
				})
				callers.Wait()
			}
			<-ctx.Done()
			if !killed {
				require.NoError(t, s.Close())
				file = saved(t, s)
			}
		}()
	}
	want := steps(0, 10*time.Second, 6)
	if held {
		want = []time.Duration{0, 36 * time.Second, 46 * time.Second, 56 * time.Second}
	}
	require.Equal(t, want, left)
}

// Limits that were changed since then hold wherever they stand, also within an All.
func TestLoadedIntoOtherLimitsWithinAll(t *testing.T) {
	day := func(n int64) scheduler.Scheduler {
		return scheduler.All(scheduler.Must(scheduler.NewFixedWindow(n, 24*time.Hour)), scheduler.All(),
			scheduler.Must(scheduler.NewGCRA(scheduler.PerSecond(n), n)))
	}
	for name, build := range map[string]func(n int64) *shaper.Shaper{
		"NewFrom": func(n int64) *shaper.Shaper { return shaper.MustNewFrom(day(n)) },
		"WithLimits": func(n int64) *shaper.Shaper {
			return shaper.MustNew(scheduler.PerSecond(1000), shaper.WithBurst(100), shaper.WithLimits(day(n)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, more, fewer := build(5), build(8), build(3)
				require.True(t, s.AllowN(4))
				load(t, more, s)
				pass(time.Minute)
				assert.True(t, more.AllowN(4))
				pass(time.Minute)
				assert.False(t, more.Allow(), "4 of 8 and 4")
				load(t, fewer, s)
				assert.False(t, fewer.Allow(), "4 of 3")
				assert.ErrorIs(t, fewer.WaitN(t.Context(), 4), shaper.ErrCost)
			})
		})
	}
}

// What is owed may be more than any time can pay. It is saved and loaded all the same.
func TestCenturiesAreSaved(t *testing.T) {
	for name, build := range schedules {
		t.Run(name, func(t *testing.T) {
			s := shaper.MustNewFrom(build())
			for range 40 {
				s.Charge(math.MaxInt)
			}
			load(t, shaper.MustNewFrom(build()), s)
		})
	}
	t.Run("a key", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g, other := newGroup[string](t, scheduler.PerSecond(3)), newGroup[string](t, scheduler.PerSecond(3))
			for range 40 {
				require.NoError(t, g.Charge("a", math.MaxInt))
			}
			load(t, other, g)
			assert.Equal(t, g.Delay("a"), other.Delay("a"))
		})
	})
}
