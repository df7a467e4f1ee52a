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

func newFixedWindow(t testing.TB, limit int64, window time.Duration, opts ...scheduler.FixedWindowOption) *scheduler.FixedWindow {
	t.Helper()
	f, err := scheduler.NewFixedWindow(limit, window, opts...)
	require.NoError(t, err)
	return f
}

func newSlidingLog(t testing.TB, limit int64, window time.Duration) *scheduler.SlidingLog {
	t.Helper()
	l, err := scheduler.NewSlidingLog(limit, window)
	require.NoError(t, err)
	return l
}

func newSlidingCounter(t testing.TB, limit int64, window time.Duration) *scheduler.SlidingCounter {
	t.Helper()
	c, err := scheduler.NewSlidingCounter(limit, window)
	require.NoError(t, err)
	return c
}

func TestWindowsConformance(t *testing.T) {
	berlin := location(t, "Europe/Berlin")
	for name, c := range map[string]schedulertest.Config{
		"FixedWindow": {ExactAhead: true, Step: 100 * time.Millisecond,
			Conforms: ownWindow(10, func(at time.Time) int { return int(at.Unix()) }),
			New:      func() scheduler.Scheduler { return newFixedWindow(t, 10, time.Second) }},
		"FixedWindow/1": {ExactAhead: true, Step: time.Second,
			Conforms: ownWindow(1, func(at time.Time) int { return int(at.Unix()) }),
			New:      func() scheduler.Scheduler { return newFixedWindow(t, 1, time.Second) }},
		"FixedWindow/days": {ExactAhead: true, Step: 5 * time.Hour,
			Origin:   time.Date(2026, time.March, 27, 20, 0, 0, 0, time.UTC),
			Conforms: ownWindow(4, func(at time.Time) int { return at.In(berlin).YearDay() }),
			New: func() scheduler.Scheduler {
				return newFixedWindow(t, 4, day, scheduler.WithLocation(berlin))
			}},
		"FixedWindow/hours": {ExactAhead: true, Step: 7 * time.Minute,
			Conforms: ownWindow(10, func(at time.Time) int { return int(at.Add(30*time.Minute).Unix() / 3600) }),
			New: func() scheduler.Scheduler {
				return newFixedWindow(t, 10, time.Hour, scheduler.WithLocation(location(t, "Asia/Kolkata")))
			}},
		"SlidingLog": {ExactAhead: true, Step: 100 * time.Millisecond,
			Conforms: anyWindow(10, time.Second),
			New:      func() scheduler.Scheduler { return newSlidingLog(t, 10, time.Second) }},
		"SlidingLog/1": {ExactAhead: true, Step: time.Second,
			Conforms: anyWindow(1, time.Second),
			New:      func() scheduler.Scheduler { return newSlidingLog(t, 1, time.Second) }},
		"SlidingCounter": {Step: 100 * time.Millisecond,
			Conforms: weighed(10, time.Second),
			New:      func() scheduler.Scheduler { return newSlidingCounter(t, 10, time.Second) }},
		"SlidingCounter/1": {Step: time.Second,
			Conforms: weighed(1, time.Second),
			New:      func() scheduler.Scheduler { return newSlidingCounter(t, 1, time.Second) }},
		"Within": {ExactAhead: true, Step: 600 * time.Millisecond,
			New: func() scheduler.Scheduler { return newWithin(t, 100, time.Minute, 5) }},
		"All": {Step: 200 * time.Millisecond,
			New: func() scheduler.Scheduler {
				return scheduler.All(newFixedWindow(t, 20, time.Second), newSlidingLog(t, 30, 7*time.Second),
					newSlidingCounter(t, 50, 10*time.Second), newGCRA(t, scheduler.PerSecond(10), 3),
					newTokenBucket(t, scheduler.PerSecond(8), 7))
			}},
	} {
		t.Run(name, func(t *testing.T) { schedulertest.Run(t, c) })
	}
}

func newWithin(t testing.TB, limit int64, window time.Duration, burst int64, opts ...scheduler.GCRAOption) *scheduler.GCRA {
	t.Helper()
	g, err := scheduler.Within(limit, window, burst, opts...)
	require.NoError(t, err)
	return g
}

// attack sends as many units as a schedule allows as late as possible before a
// boundary and as early as possible after it, and returns how many passed.
func attack(s scheduler.Scheduler, boundary time.Time) (passed int) {
	for _, at := range []time.Time{boundary.Add(-time.Millisecond), boundary} {
		for {
			if ok, _ := scheduler.Allow(s, at, 1); !ok {
				break
			}
			passed++
		}
	}
	return passed
}

func TestAttackOnAWindowBoundary(t *testing.T) {
	const limit = 100
	boundary := origin.Truncate(time.Minute).Add(time.Minute)
	assert.Equal(t, 2*limit, attack(newFixedWindow(t, limit, time.Minute), boundary))
	assert.Equal(t, limit, attack(newSlidingLog(t, limit, time.Minute), boundary))
	assert.Equal(t, limit, attack(newSlidingCounter(t, limit, time.Minute), boundary))
	assert.Equal(t, 5, attack(newWithin(t, limit, time.Minute, 5), boundary))
	assert.Equal(t, limit, attack(newWithin(t, limit, time.Minute, limit), boundary))
}

func TestFixedWindowResetsAtTheBoundary(t *testing.T) {
	f := newFixedWindow(t, 2, time.Minute)
	at := origin.Truncate(time.Minute).Add(42 * time.Second)
	for range 2 {
		ok, _ := scheduler.Allow(f, at, 1)
		assert.True(t, ok)
	}
	ok, wait := scheduler.Allow(f, at, 1)
	assert.False(t, ok)
	assert.Equal(t, 18*time.Second, wait)
	ok, _ = scheduler.Allow(f, at.Add(wait-1), 1)
	assert.False(t, ok)
	ok, _ = scheduler.Allow(f, at.Add(wait), 2)
	assert.True(t, ok)
	ok, _ = scheduler.Allow(f, at.Add(wait), 3)
	assert.False(t, ok, "a cost above the limit")
}

func location(t testing.TB, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Skipf("no time zone data: %v", err)
	}
	return zone
}

func TestFixedWindowFollowsTheCalendar(t *testing.T) {
	for _, tt := range []struct {
		zone  string
		first string // an instant of the day that fills up
		want  string // when the next day begins
		lasts time.Duration
	}{
		{"UTC", "2026-05-01T00:00:00Z", "2026-05-02T00:00:00Z", 24 * time.Hour},
		{"Europe/Berlin", "2026-05-01T00:00:00+02:00", "2026-05-02T00:00:00+02:00", 24 * time.Hour},
		{"Europe/Berlin", "2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00", 23 * time.Hour},
		{"Europe/Berlin", "2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00", 25 * time.Hour},
		{"America/New_York", "2026-11-01T00:00:00-04:00", "2026-11-02T00:00:00-05:00", 25 * time.Hour},
		{"Asia/Kolkata", "2026-05-01T00:00:00+05:30", "2026-05-02T00:00:00+05:30", 24 * time.Hour},
		// Clocks go from 23:59:59 to 01:00, so this day has no midnight.
		{"America/Sao_Paulo", "2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00", 23 * time.Hour},
		{"America/Sao_Paulo", "2018-11-03T00:00:00-03:00", "2018-11-04T01:00:00-02:00", 24 * time.Hour},
		// The day that ends with an hour that comes twice.
		{"America/Sao_Paulo", "2018-02-17T00:00:00-02:00", "2018-02-18T00:00:00-03:00", 25 * time.Hour},
		// The islands had no 30 December that year.
		{"Pacific/Apia", "2011-12-29T00:00:00-10:00", "2011-12-31T00:00:00+14:00", 24 * time.Hour},
	} {
		t.Run(tt.zone+"/"+tt.first, func(t *testing.T) {
			f := newFixedWindow(t, 1, day, scheduler.WithLocation(location(t, tt.zone)))
			first, err := time.Parse(time.RFC3339, tt.first)
			require.NoError(t, err)
			want, err := time.Parse(time.RFC3339, tt.want)
			require.NoError(t, err)
			assert.Equal(t, tt.lasts, want.Sub(first), "of the table")

			// At any time of the day the next unit is due when the next day begins.
			for _, at := range []time.Duration{0, 1, tt.lasts / 2, tt.lasts - 1} {
				f.Commit(first.Add(at), first.Add(at), 1)
				assert.True(t, want.Equal(f.Next(first.Add(at), 0, 1)), "%v after its beginning", at)
			}
		})
	}
}

func TestFixedWindowAheadByTheCalendar(t *testing.T) {
	f := newFixedWindow(t, 10, day, scheduler.WithLocation(location(t, "Europe/Berlin")))
	friday := time.Date(2026, time.March, 27, 12, 0, 0, 0, time.UTC)
	got := f.Next(friday, 35, 1)
	assert.Equal(t, "2026-03-30T00:00:00+02:00", got.In(location(t, "Europe/Berlin")).Format(time.RFC3339))
}

func TestFixedWindowHoursOfAZone(t *testing.T) {
	f := newFixedWindow(t, 1, time.Hour, scheduler.WithLocation(location(t, "Asia/Kolkata")))
	at := time.Date(2026, time.May, 1, 9, 10, 0, 0, time.UTC) // 14:40 there
	f.Commit(at, at, 1)
	assert.Equal(t, 20*time.Minute, f.Next(at, 0, 1).Sub(at))
}

func TestFixedWindowWeeksBeginOnMonday(t *testing.T) {
	f := newFixedWindow(t, 1, 7*day)
	f.Commit(origin, origin, 1)
	next := f.Next(origin, 0, 1)
	assert.Equal(t, time.Monday, next.Weekday())
	assert.Equal(t, next, next.Truncate(day))
}

// A million random arrivals, mostly denser than the limit.
func TestSlidingLogNeverExceedsItsLimit(t *testing.T) { trial.Run(t, 8, slidingLogNeverExceeds) }

func slidingLogNeverExceeds(t *testing.T, rng *rand.Rand) {
	const limit, window = 50, time.Second
	l := newSlidingLog(t, limit, window)
	recent := make([]time.Time, 0, limit) // the last units, by a naive model
	now := origin
	passed := 0
	for range 125_000 {
		now = now.Add(time.Duration(rng.Int64N(int64(20 * time.Millisecond))))
		for len(recent) > 0 && now.Sub(recent[0]) >= window {
			recent = recent[1:]
		}
		n := 1 + rng.Int64N(3)
		ok, _ := scheduler.Allow(l, now, n)
		if fits := int64(len(recent))+n <= limit; ok != fits {
			t.Fatalf("%d units beside %d in the window: %v", n, len(recent), ok)
		}
		if ok {
			passed++
			for range n {
				recent = append(recent, now)
			}
		}
	}
	assert.Greater(t, passed, 12_500)
}

func TestSlidingCounterExample(t *testing.T) {
	c := newSlidingCounter(t, 100, time.Minute)
	start := origin.Truncate(time.Minute)
	c.Commit(start, start.Add(30*time.Second), 80)
	quarter := start.Add(time.Minute + 15*time.Second)
	ok, _ := scheduler.Allow(c, quarter, 41)
	assert.False(t, ok)
	ok, _ = scheduler.Allow(c, quarter, 40)
	assert.True(t, ok)
	ok, wait := scheduler.Allow(c, quarter, 1)
	assert.False(t, ok)
	assert.Equal(t, 750*time.Millisecond, wait, "when one of the 80 has slid out")
}

func TestWithinUsesTheWindow(t *testing.T) { trial.Run(t, 1, withinUsesTheWindow) }

func withinUsesTheWindow(t *testing.T, rng *rand.Rand) {
	for _, burst := range []int64{1, 2, 5, 100} {
		for _, tolerance := range []time.Duration{0, 5 * time.Millisecond, time.Second} {
			g := newWithin(t, 100, time.Minute, burst, scheduler.WithTolerance(tolerance))
			left := make([]time.Time, 0, 5000)
			now := origin
			for range 5000 {
				due := g.Next(now, 0, 1)
				at := due.Add(time.Duration(rng.Int64N(int64(tolerance) + 1)))
				if len(left) > 0 {
					at = later(at, left[len(left)-1])
				}
				g.Commit(due, at, 1)
				left = append(left, at)
				if rng.IntN(200) == 0 {
					now = at.Add(time.Duration(rng.Int64N(int64(3 * time.Second))))
				}
			}
			for i := range left[:len(left)-100] {
				// A closed window of a minute holds at most 100.
				if w := left[i+100].Sub(left[i]); w <= time.Minute {
					t.Fatalf("burst %d tolerance %v: 101 units within %v", burst, tolerance, w)
				}
			}
			saturated := drain(newWithin(t, 100, time.Minute, burst, scheduler.WithTolerance(tolerance)), 10_000)
			used := float64(len(saturated)-1) / saturated[len(saturated)-1].Minutes()
			if burst <= 5 {
				assert.GreaterOrEqual(t, used, 94.4, "burst %d tolerance %v", burst, tolerance)
			}
			if burst == 1 && tolerance == 0 {
				assert.InDelta(t, 100, used, 0.001)
			}
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func TestWindowsSetLimit(t *testing.T) {
	type limited interface {
		scheduler.Scheduler
		SetLimit(time.Time, int64) error
	}
	start := origin.Truncate(time.Minute)
	for name, s := range map[string]limited{
		"FixedWindow":    newFixedWindow(t, 10, time.Minute),
		"SlidingLog":     newSlidingLog(t, 10, time.Minute),
		"SlidingCounter": newSlidingCounter(t, 10, time.Minute),
	} {
		s.Commit(start, start, 8)
		require.NoError(t, s.SetLimit(start, 12), name)
		assert.Equal(t, start, s.Next(start, 0, 4), "%s: 8 of 12 are used", name)
		assert.True(t, s.Next(start, 0, 5).After(start), name)
		require.NoError(t, s.SetLimit(start, 5), name)
		assert.True(t, s.Next(start, 0, 1).After(start), "%s: 8 of 5 are used", name)
		assert.EqualValues(t, 5, s.MaxCost(), name)
		assert.False(t, s.Next(start, 0, 5).After(start.Add(2*time.Minute)), name)
		assert.ErrorContains(t, s.SetLimit(start, 0), "limit 0", name)
		assert.EqualValues(t, 5, s.MaxCost(), name)
		require.NoError(t, s.SetLimit(start, 100), name)
		s.Commit(start, start, 20)
		assert.True(t, s.Next(start, 0, 81).After(start), name)
	}
}

// A limit that is lowered and raised again forgets nothing.
func TestSlidingLogRemembersAcrossACut(t *testing.T) {
	l := newSlidingLog(t, 10, time.Second)
	l.Commit(origin, origin, 10)
	require.NoError(t, l.SetLimit(origin, 2))
	assert.Equal(t, origin.Add(time.Second), l.Next(origin, 0, 1))
	data, err := l.MarshalBinary()
	require.NoError(t, err)
	require.NoError(t, l.UnmarshalBinary(data))
	require.NoError(t, l.SetLimit(origin, 10))
	assert.Equal(t, origin.Add(time.Second), l.Next(origin, 0, 1))
	require.NoError(t, l.SetLimit(origin, 2))
	for i := range 100 { // what it remembers does not grow
		at := origin.Add(time.Duration(i+1) * time.Second)
		l.Commit(at, at, 1)
	}
	state, err := l.MarshalBinary()
	require.NoError(t, err)
	assert.LessOrEqual(t, len(state), len(data))

	l = newSlidingLog(t, 10, time.Second)
	l.Commit(origin, origin, 10)
	require.NoError(t, l.SetLimit(origin.Add(time.Second), 2))
	assert.Equal(t, origin.Add(time.Second), l.Next(origin.Add(time.Second), 0, 2), "all have aged out")
}

// The instant 0 is one like any other.
func TestSlidingLogFromTheZeroTime(t *testing.T) {
	var zero time.Time
	l := newSlidingLog(t, 2, 10*time.Second)
	l.Commit(zero, zero, 1)
	l.Commit(zero, zero.Add(9*time.Second), 1)
	assert.Equal(t, 10*time.Second, l.Next(zero, 0, 1).Sub(zero))
}

func TestFixedWindowOfCenturiesDoesNotWrap(t *testing.T) {
	f := newFixedWindow(t, 1, math.MaxInt64-day+1)
	last := origin
	for ahead := range int64(5) {
		next := f.Next(origin, ahead, 1)
		assert.False(t, next.Before(last), "ahead %d: %v after %v", ahead, next, last)
		last = next
	}
}

func TestSlidingLogKeepsTheNewestUnitsAfterACut(t *testing.T) {
	l := newSlidingLog(t, 4, time.Minute)
	for i := range 6 {
		at := origin.Add(time.Duration(i) * 20 * time.Second)
		l.Commit(at, at, 1)
	}
	now := origin.Add(100 * time.Second) // the log holds 40, 60, 80 and 100 s
	require.NoError(t, l.SetLimit(now, 2))
	assert.Equal(t, 140*time.Second, l.Next(now, 0, 1).Sub(origin))
	assert.Equal(t, 160*time.Second, l.Next(now, 0, 2).Sub(origin))
}

func TestWindowsAfterAMonthOfIdleEqualFreshOnes(t *testing.T) {
	builds := map[string]func() scheduler.Scheduler{
		"FixedWindow":    func() scheduler.Scheduler { return newFixedWindow(t, 10, time.Minute) },
		"SlidingLog":     func() scheduler.Scheduler { return newSlidingLog(t, 10, time.Minute) },
		"SlidingCounter": func() scheduler.Scheduler { return newSlidingCounter(t, 10, time.Minute) },
		"Within":         func() scheduler.Scheduler { return newWithin(t, 10, time.Minute, 2) },
	}
	month := origin.Add(30 * day)
	for name, build := range builds {
		used, fresh := build(), build()
		used.Commit(origin, origin, 9)
		for range 50 {
			n := int64(3)
			want, got := fresh.Next(month, 0, n), used.Next(month, 0, n)
			assert.Equal(t, want, got, name)
			fresh.Commit(want, want, n)
			used.Commit(got, got, n)
		}
	}
}

func TestWindowsRefuseNonsense(t *testing.T) {
	for names, build := range map[string]func() error{
		"limit 0":    func() error { _, err := scheduler.NewFixedWindow(0, time.Second); return err },
		"limit -1":   func() error { _, err := scheduler.NewSlidingLog(-1, time.Second); return err },
		"window 0s":  func() error { _, err := scheduler.NewSlidingCounter(1, 0); return err },
		"window -1s": func() error { _, err := scheduler.NewFixedWindow(1, -time.Second); return err },
		"location nil": func() error {
			_, err := scheduler.NewFixedWindow(1, day, scheduler.WithLocation(nil))
			return err
		},
		"window 7h0m0s in UTC": func() error {
			_, err := scheduler.NewFixedWindow(1, 7*time.Hour, scheduler.WithLocation(time.UTC))
			return err
		},
		"window 7m0s in UTC": func() error {
			_, err := scheduler.NewFixedWindow(1, 7*time.Minute, scheduler.WithLocation(time.UTC))
			return err
		},
		"limit 5 with burst 6": func() error { _, err := scheduler.Within(5, time.Second, 6); return err },
		"burst 0":              func() error { _, err := scheduler.Within(5, time.Second, 0); return err },
		"window 0s: must":      func() error { _, err := scheduler.Within(5, 0, 1); return err },
		"limit -9223372036854775808": func() error {
			_, err := scheduler.Within(math.MinInt64, time.Second, math.MaxInt64)
			return err
		},
		"with tolerance": func() error {
			_, err := scheduler.Within(5, math.MaxInt64, 1, scheduler.WithTolerance(1))
			return err
		},
	} {
		assert.ErrorContains(t, build(), names)
	}
}

// Two windows may be longer than a Duration can tell.
func TestSlidingCounterOfALongWindowIsNotFreshTooSoon(t *testing.T) {
	const window = 200 * 365 * 24 * time.Hour
	c := scheduler.Must(scheduler.NewSlidingCounter(1, window))
	now := time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC)
	c.Commit(now, now, 1)
	at, ok := c.FreshAt()
	require.True(t, ok)
	assert.Equal(t, now.Truncate(window).Add(window).Add(window), at)
}
