package scheduler_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/schedulertest"
)

// A day has begun once clocks have shown its date and the start of the day, or more. The
// model goes through time minute by minute and remembers the latest day that has begun.
func TestFixedWindowDaysWhereClocksAreSet(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	for _, tt := range settings {
		zone := location(t, tt.zone)
		for _, start := range []time.Duration{0, 90 * time.Minute, 5 * time.Hour, 23*time.Hour + 59*time.Minute} {
			for _, days := range []int{1, 2, 7} {
				window := time.Duration(days) * day
				opts := []scheduler.FixedWindowOption{scheduler.WithLocation(zone), scheduler.WithDayStart(start)}
				var asked []time.Time // that wait for the next window
				latest := 0
				for at := fullMinute(tt.day, zone).Add(-50 * time.Hour); at.Before(tt.day.Add(200 * time.Hour)); at = at.Add(time.Minute) {
					number := numberOf(at, zone, start, days)
					if number > latest {
						for _, earlier := range asked {
							f := newFixedWindow(t, 1, window, opts...) // that remembers no end of its window
							f.Commit(earlier, earlier, 1)
							if next := f.Next(earlier, 0, 1); !next.Equal(at) {
								t.Fatalf("%s, %d days from %v: from %v the next begins at %v, want %v", tt.zone, days, start,
									earlier.In(zone), next.In(zone), at.In(zone))
							}
						}
						latest, asked = number, []time.Time{at}
					} else if latest > 0 && rng.IntN(60) == 0 {
						asked = append(asked, at)
					}
				}
			}
		}
	}
}

// numberOf counts windows of days by what the clocks show.
func numberOf(at time.Time, zone *time.Location, start time.Duration, days int) int {
	shown := at.In(zone)
	date := time.Date(shown.Year(), shown.Month(), shown.Day(), 0, 0, 0, 0, time.UTC)
	h, m, s := shown.Clock()
	if time.Duration(h)*time.Hour+time.Duration(m)*time.Minute+time.Duration(s)*time.Second < start {
		date = date.AddDate(0, 0, -1)
	}
	monday := time.Date(1800, time.January, 6, 0, 0, 0, 0, time.UTC)
	return 1 + (int(date.Sub(monday).Hours()/24)+dayOfMonday(days))/days
}

// dayOfMonday returns how many days into a window that Monday is; windows count from the
// first day of the year 1.
func dayOfMonday(days int) int {
	first := time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC)
	monday := time.Date(1800, time.January, 6, 0, 0, 0, 0, time.UTC)
	return int((monday.Unix()-first.Unix())/(24*60*60)) % days
}

func TestFixedWindowDayStart(t *testing.T) {
	newYork := location(t, "America/New_York")
	for name, tt := range map[string]struct {
		window time.Duration
		opts   []scheduler.FixedWindowOption
		at     string
		want   string
	}{
		"before it":         {day, []scheduler.FixedWindowOption{scheduler.WithLocation(newYork)}, "2026-05-01T04:59:59-04:00", "2026-05-01T05:00:00-04:00"},
		"at it":             {day, []scheduler.FixedWindowOption{scheduler.WithLocation(newYork)}, "2026-05-01T05:00:00-04:00", "2026-05-02T05:00:00-04:00"},
		"over a day of 23h": {day, []scheduler.FixedWindowOption{scheduler.WithLocation(newYork)}, "2026-03-07T05:00:00-05:00", "2026-03-08T05:00:00-04:00"},
		"over a day of 25h": {day, []scheduler.FixedWindowOption{scheduler.WithLocation(newYork)}, "2026-10-31T05:00:00-04:00", "2026-11-01T05:00:00-05:00"},
		"UTC":               {day, nil, "2026-05-01T04:00:00Z", "2026-05-01T05:00:00Z"},
		"weeks":             {7 * day, nil, "2026-05-01T04:00:00Z", "2026-05-04T05:00:00Z"},
		"weeks of a zone":   {7 * day, []scheduler.FixedWindowOption{scheduler.WithLocation(newYork)}, "2026-03-02T05:00:00-05:00", "2026-03-09T05:00:00-04:00"},
	} {
		f := newFixedWindow(t, 1, tt.window, append(tt.opts, scheduler.WithDayStart(5*time.Hour))...)
		at, err := time.Parse(time.RFC3339, tt.at)
		require.NoError(t, err)
		f.Commit(at, at, 1)
		want, err := time.Parse(time.RFC3339, tt.want)
		require.NoError(t, err)
		assert.True(t, want.Equal(f.Next(at, 0, 1)), "%s: %v", name, f.Next(at, 0, 1))
	}
}

func TestFixedWindowDayStartConformance(t *testing.T) {
	berlin := location(t, "Europe/Berlin")
	schedulertest.Run(t, schedulertest.Config{
		New: func() scheduler.Scheduler {
			return newFixedWindow(t, 4, day, scheduler.WithLocation(berlin), scheduler.WithDayStart(5*time.Hour))
		},
		Conforms:   ownWindow(4, func(at time.Time) int { return numberOf(at, berlin, 5*time.Hour, 1) }),
		Step:       5 * time.Hour,
		ExactAhead: true,
		Origin:     time.Date(2026, time.March, 27, 20, 0, 0, 0, time.UTC),
	})
}

// The state knows when days begin, and in which zone.
func TestFixedWindowDayStartOutlivesTheProcess(t *testing.T) {
	f := newFixedWindow(t, 1, day, scheduler.WithLocation(location(t, "Europe/Berlin")), scheduler.WithDayStart(5*time.Hour))
	f.Commit(origin, origin, 1)
	data, err := f.MarshalBinary()
	require.NoError(t, err)
	var loaded scheduler.FixedWindow
	require.NoError(t, loaded.UnmarshalBinary(data))
	assert.Equal(t, f.Next(origin, 0, 1), loaded.Next(origin, 0, 1))
	assert.Equal(t, f.Next(origin, 2, 1), loaded.Next(origin, 2, 1))
	assert.Equal(t, "2026-05-04T05:00:00+02:00", f.Next(origin, 2, 1).In(location(t, "Europe/Berlin")).Format(time.RFC3339))
}

func TestFixedWindowDayStartRefusesNonsense(t *testing.T) {
	for names, tt := range map[string]struct {
		window time.Duration
		opts   []scheduler.FixedWindowOption
	}{
		"day start 5h0m0s with window 1h0m0s":  {time.Hour, []scheduler.FixedWindowOption{scheduler.WithDayStart(5 * time.Hour)}},
		"day start 0s with window 1h0m0s":      {time.Hour, []scheduler.FixedWindowOption{scheduler.WithDayStart(0)}},
		"day start 5h0m0s with window 25h0m0s": {25 * time.Hour, []scheduler.FixedWindowOption{scheduler.WithDayStart(5 * time.Hour)}},
		"day start 5h0m0s with window 30m0s": {30 * time.Minute,
			[]scheduler.FixedWindowOption{scheduler.WithLocation(time.UTC), scheduler.WithDayStart(5 * time.Hour)}},
		"day start -1ns: must":    {day, []scheduler.FixedWindowOption{scheduler.WithDayStart(-1)}},
		"day start 24h0m0s: must": {day, []scheduler.FixedWindowOption{scheduler.WithDayStart(day)}},
		"window 25h0m0s in UTC":   {25 * time.Hour, []scheduler.FixedWindowOption{scheduler.WithLocation(time.UTC)}},
	} {
		_, err := scheduler.NewFixedWindow(1, tt.window, tt.opts...)
		assert.ErrorContains(t, err, names)
	}
}
