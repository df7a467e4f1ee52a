package scheduler_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/schedulertest"
)

// opening is a schedule of a user's: open for a while at the beginning of each period.
type opening struct {
	period, open time.Duration
	shift        time.Duration
	seen         time.Time
	questions    int
}

func (o *opening) Next(t time.Time, ahead, n int64) time.Time {
	o.questions++
	t = later(t, o.seen)
	start := t.Add(-o.shift).Truncate(o.period).Add(o.shift)
	if t.Sub(start) < o.open {
		return t
	}
	return start.Add(o.period)
}

func (o *opening) Commit(due, left time.Time, n int64) { o.seen = later(o.seen, left) }
func (o *opening) MaxCost() int64                      { return 1<<63 - 1 }

func (o *opening) conforms(_ []schedulertest.Departure, at time.Time, _ int64) bool {
	start := at.Add(-o.shift).Truncate(o.period).Add(o.shift)
	return at.Sub(start) < o.open
}

// Whatever stands beside a schedule with closed times, in whatever order, and in All once
// more: nothing leaves in them.
func TestAllKeepsClosedTimes(t *testing.T) {
	hours := opening{period: time.Second, open: 150 * time.Millisecond}
	more := opening{period: 300 * time.Millisecond, open: 130 * time.Millisecond, shift: 70 * time.Millisecond}
	type members func() []scheduler.Scheduler
	user := func(o opening) scheduler.Scheduler { return &o }
	for name, tt := range map[string]struct {
		members  members
		conforms definition
	}{
		"gcra": {
			func() []scheduler.Scheduler {
				return []scheduler.Scheduler{user(hours), newGCRA(t, scheduler.PerSecond(10), 2)}
			}, both(hours.conforms, bucket(2, 100*time.Millisecond)),
		},
		"log": {
			func() []scheduler.Scheduler {
				return []scheduler.Scheduler{user(hours), newSlidingLog(t, 9, 1300*time.Millisecond)}
			}, both(hours.conforms, anyWindow(9, 1300*time.Millisecond)),
		},
		"two and a bucket": {
			func() []scheduler.Scheduler {
				return []scheduler.Scheduler{user(hours), user(more), newTokenBucket(t, scheduler.PerSecond(10), 5)}
			}, both(both(hours.conforms, more.conforms), bucket(5, 100*time.Millisecond)),
		},
	} {
		for order, build := range map[string]func([]scheduler.Scheduler) scheduler.Scheduler{
			"as given": func(s []scheduler.Scheduler) scheduler.Scheduler { return scheduler.All(s...) },
			"reversed": func(s []scheduler.Scheduler) scheduler.Scheduler { return scheduler.All(reversed(s)...) },
			"nested": func(s []scheduler.Scheduler) scheduler.Scheduler {
				return scheduler.All(scheduler.All(s[0]), scheduler.All(s[1:]...))
			},
			"in a nest": func(s []scheduler.Scheduler) scheduler.Scheduler {
				return scheduler.All(scheduler.All(reversed(s)[:len(s)-1]...), s[0])
			},
		} {
			t.Run(name+"/"+order, func(t *testing.T) {
				schedulertest.Run(t, schedulertest.Config{
					New:      func() scheduler.Scheduler { return build(tt.members()) },
					Conforms: tt.conforms,
					Step:     100 * time.Millisecond,
				})
			})
		}
	}
}

func reversed(s []scheduler.Scheduler) []scheduler.Scheduler {
	out := make([]scheduler.Scheduler, 0, len(s))
	for i := len(s) - 1; i >= 0; i-- {
		out = append(out, s[i])
	}
	return out
}

// The partner is closed by night, and 2 of its day's calls are left in the evening.
func TestAllOfHoursAndAQuota(t *testing.T) {
	for _, s := range []scheduler.Scheduler{
		scheduler.All(newHours(t, time.UTC, 9*time.Hour, 17*time.Hour), newFixedWindow(t, 2, day)),
		scheduler.All(newFixedWindow(t, 2, day), newHours(t, time.UTC, 9*time.Hour, 17*time.Hour)),
	} {
		evening := origin.Truncate(day).Add(16 * time.Hour)
		s.Commit(evening, evening, 2)
		assert.Equal(t, evening.Add(17*time.Hour), s.Next(evening, 0, 1), "the window begins at midnight, the day at nine")
		assert.Equal(t, evening.Add(41*time.Hour), s.Next(evening, 2, 1), "two more fill the next day")
	}
}

// Closed times that never meet are found out, and soon.
func TestAllOfTimesThatNeverMeet(t *testing.T) {
	a, b := &opening{period: time.Hour, open: time.Minute}, &opening{period: time.Hour, open: time.Minute, shift: 30 * time.Minute}
	never := time.Duration(1<<63 - 1)
	for _, s := range []scheduler.Scheduler{scheduler.All(a, b), scheduler.All(b, a), scheduler.All(scheduler.All(b), newGCRA(t, scheduler.PerSecond(1), 1), a)} {
		a.questions, b.questions = 0, 0
		assert.Equal(t, never, s.Next(origin, 0, 1).Sub(origin))
		assert.Equal(t, never, s.Next(origin, 3, 1).Sub(origin))
		assert.Less(t, a.questions+b.questions, 10_000)
		ok, wait := scheduler.Allow(s, origin, 1)
		assert.False(t, ok)
		assert.Equal(t, never, wait)
	}
}

// demanding notes what it is told.
type demanding struct {
	scheduler.Scheduler
	from []time.Time
	err  error
}

func (d *demanding) Demand(from time.Time, _, _ int64, _ time.Time) { d.from = append(d.from, from) }
func (d *demanding) Refusal() error                                 { return d.err }

// A limit that gets its units from elsewhere is told from when on all others allow what waits.
func TestAllTellsOfDemandWhenTheOthersAllow(t *testing.T) {
	a := &opening{period: time.Hour, open: 10 * time.Minute, shift: 15 * time.Minute}
	b := &opening{period: 40 * time.Minute, open: 10 * time.Minute}
	shared := &demanding{Scheduler: newGCRA(t, scheduler.PerSecond(10), 1)}
	for _, s := range []scheduler.Scheduler{scheduler.All(shared, a, b), scheduler.All(b, scheduler.All(a), shared), scheduler.All(scheduler.All(shared, a), b)} {
		shared.from = nil
		from := origin.Truncate(2 * time.Hour).Add(30 * time.Minute)
		s.(scheduler.Demander).Demand(from, 5, 1, time.Time{})
		assert.Equal(t, []time.Time{s.Next(from, 0, 1)}, shared.from)
		assert.True(t, a.conforms(nil, shared.from[0], 1) && b.conforms(nil, shared.from[0], 1))

		require.NoError(t, s.(scheduler.Refuser).Refusal())
		shared.err = errors.New("away")
		require.Equal(t, shared.err, s.(scheduler.Refuser).Refusal())
		shared.err = nil
	}
}
