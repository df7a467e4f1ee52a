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

func newHours(t testing.TB, zone *time.Location, from, to time.Duration) *scheduler.Hours {
	t.Helper()
	h, err := scheduler.NewHours(zone, from, to)
	require.NoError(t, err)
	return h
}

// clockShows returns a definition of open hours that reads the clock.
func clockShows(zone *time.Location, from, to time.Duration) func(time.Time) bool {
	return func(at time.Time) bool {
		h, m, s := at.In(zone).Clock()
		shows := time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(s)*time.Second +
			time.Duration(at.Nanosecond())
		if from < to {
			return from <= shows && shows < to
		}
		return from <= shows || shows < to
	}
}

func open(hours func(time.Time) bool) definition {
	return func(_ []schedulertest.Departure, at time.Time, _ int64) bool { return hours(at) }
}

func TestHoursConformance(t *testing.T) {
	berlin := location(t, "Europe/Berlin")
	for name, tt := range map[string]struct{ from, to time.Duration }{
		"day":   {9 * time.Hour, 17*time.Hour + 30*time.Minute},
		"night": {22 * time.Hour, 6 * time.Hour},
		"short": {2*time.Hour + 15*time.Minute, 2*time.Hour + 45*time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			schedulertest.Run(t, schedulertest.Config{
				New:        func() scheduler.Scheduler { return newHours(t, berlin, tt.from, tt.to) },
				Conforms:   open(clockShows(berlin, tt.from, tt.to)),
				Step:       2 * time.Hour,
				ExactAhead: true,
				Origin:     time.Date(2026, time.March, 27, 20, 0, 0, 0, time.UTC),
			})
		})
	}
}

// settings are days on which clocks are set, in zones that do it in different ways.
var settings = []struct {
	zone string
	day  time.Time
}{
	{"America/New_York", time.Date(2026, time.March, 8, 0, 0, 0, 0, time.UTC)},
	{"America/New_York", time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC)},
	{"Europe/London", time.Date(2026, time.March, 29, 0, 0, 0, 0, time.UTC)},
	{"Europe/London", time.Date(2026, time.October, 25, 0, 0, 0, 0, time.UTC)},
	{"America/Sao_Paulo", time.Date(2018, time.November, 4, 0, 0, 0, 0, time.UTC)}, // no midnight
	{"America/Sao_Paulo", time.Date(2018, time.February, 18, 0, 0, 0, 0, time.UTC)},
	{"America/St_Johns", time.Date(2006, time.October, 29, 0, 0, 0, 0, time.UTC)}, // back over midnight, at 00:01
	{"America/St_Johns", time.Date(2006, time.April, 2, 0, 0, 0, 0, time.UTC)},
	{"Australia/Lord_Howe", time.Date(2026, time.April, 4, 0, 0, 0, 0, time.UTC)}, // by half an hour
	{"Australia/Lord_Howe", time.Date(2026, time.October, 3, 0, 0, 0, 0, time.UTC)},
	{"Pacific/Apia", time.Date(2011, time.December, 30, 0, 0, 0, 0, time.UTC)},  // no such day
	{"America/Juneau", time.Date(1867, time.October, 18, 0, 0, 0, 0, time.UTC)}, // one day twice, offsets in seconds
	{"Asia/Kolkata", time.Date(2026, time.May, 1, 0, 0, 0, 0, time.UTC)},
	{"UTC", time.Date(2026, time.May, 1, 0, 0, 0, 0, time.UTC)},
}

// fullMinute returns an instant at which clocks show a full minute. In each of the
// settings they go on to show one every minute, so a model can try these instants.
func fullMinute(at time.Time, zone *time.Location) time.Time {
	_, offset := at.In(zone).Zone()
	return at.Add(-time.Duration(offset%60) * time.Second)
}

// Every minute of the days around each, and an instant within it, against a model that
// tries one after the other.
func TestHoursWhereClocksAreSet(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	for _, tt := range settings {
		zone := location(t, tt.zone)
		for range 12 {
			from := time.Duration(rng.Int64N(24*60)) * time.Minute
			to := time.Duration(rng.Int64N(24*60+1)) * time.Minute
			if rng.IntN(2) == 0 {
				from, to = time.Duration(rng.Int64N(4*60))*time.Minute, time.Duration(rng.Int64N(4*60))*time.Minute
			}
			if from == to {
				continue
			}
			hours, isOpen := newHours(t, zone, from, to), clockShows(zone, from, to)
			// Backwards, so the model knows the next open second.
			next := time.Time{}
			for at := fullMinute(tt.day, zone).Add(96 * time.Hour); at.After(tt.day.Add(-36 * time.Hour)); at = at.Add(-time.Minute) {
				within := at.Add(1 + time.Duration(rng.Int64N(int64(time.Minute-1))))
				want := next
				if isOpen(at) {
					next, want = at, within
				}
				if next.IsZero() || want.IsZero() {
					continue
				}
				if got := hours.Next(at, 0, 1); !got.Equal(next) {
					t.Fatalf("%s, open %v to %v: at %v open next at %v, want %v", tt.zone, from, to, at.In(zone), got.In(zone), next.In(zone))
				}
				if got := hours.Next(within, 0, 1); !got.Equal(want) {
					t.Fatalf("%s, open %v to %v: at %v open next at %v, want %v", tt.zone, from, to, within.In(zone), got.In(zone), want.In(zone))
				}
			}
		}
	}
}

func TestHoursThatClocksSkipOrShowTwice(t *testing.T) {
	newYork := location(t, "America/New_York")
	h := newHours(t, newYork, 2*time.Hour+15*time.Minute, 2*time.Hour+45*time.Minute)
	at := time.Date(2026, time.March, 8, 0, 0, 0, 0, newYork)
	assert.Equal(t, "2026-03-09T02:15:00-04:00", h.Next(at, 0, 1).Format(time.RFC3339), "8 March has no such time")

	h = newHours(t, newYork, 2*time.Hour+30*time.Minute, 4*time.Hour)
	assert.Equal(t, "2026-03-08T03:00:00-04:00", h.Next(at, 0, 1).Format(time.RFC3339), "half an hour of them is skipped")

	h = newHours(t, newYork, time.Hour, 90*time.Minute)
	at = time.Date(2026, time.November, 1, 1, 30, 0, 0, newYork)
	assert.Equal(t, "2026-11-01T01:00:00-05:00", h.Next(at, 0, 1).Format(time.RFC3339), "they come again")
}

func TestHoursRefuseNonsense(t *testing.T) {
	for names, tt := range map[string]struct {
		zone     *time.Location
		from, to time.Duration
	}{
		"location nil":              {nil, 0, time.Hour},
		"from -1ns":                 {time.UTC, -1, time.Hour},
		"from 24h0m0s":              {time.UTC, day, time.Hour},
		"to -1h0m0s":                {time.UTC, 0, -time.Hour},
		"to 24h0m0.000000001s":      {time.UTC, 0, day + 1},
		"from 9h0m0s to 9h0m0s: mu": {time.UTC, 9 * time.Hour, 9 * time.Hour},
	} {
		_, err := scheduler.NewHours(tt.zone, tt.from, tt.to)
		assert.ErrorContains(t, err, names)
	}
	assert.Equal(t, steps(0, 3), drain(newHours(t, time.UTC, 0, day), 3), "all day")
}

// The last day of a leap year, far enough ahead that a zone has rules and no table for it,
// is a day as others are.
func TestLastDayOfALeapYear(t *testing.T) {
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe"} {
		t.Run(name, func(t *testing.T) {
			zone := location(t, name)
			for year := 2028; year <= 2096; year += 4 {
				for hour := 30; hour <= 60; hour += 3 { // from that day on
					at := time.Date(year, time.December, 30, hour, 0, 0, 0, zone)
					h := newHours(t, zone, 9*time.Hour, 10*time.Hour)
					want := time.Date(at.Year(), at.Month(), at.Day(), 9, 0, 0, 0, zone)
					if at.Hour() >= 10 {
						want = time.Date(at.Year(), at.Month(), at.Day()+1, 9, 0, 0, 0, zone)
					} else if at.Hour() == 9 {
						want = at
					}
					assert.WithinDuration(t, want, h.Next(at, 0, 1), 0, "after %v", at)

					w := newFixedWindow(t, 1, day, scheduler.WithLocation(zone))
					w.Commit(at, at, 1)
					midnight := time.Date(at.Year(), at.Month(), at.Day()+1, 0, 0, 0, 0, zone)
					assert.WithinDuration(t, midnight, w.Next(at, 0, 1), 0, "after %v", at)
				}
			}
		})
	}
}
