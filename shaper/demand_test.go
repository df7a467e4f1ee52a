package shaper_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// shared is a schedule as many processes share one: it has to be told what waits, lets units
// leave from when it has got them, and may be cut off from its store.
type shared struct {
	*scheduler.GCRA // of which the pace is
	start           time.Time
	again           func()
	got             time.Duration // since start: nothing may leave before
	away            error
	closed          int
	told            demand
}

// demand is what a shared schedule is told, times since its start; a deadline of 0 is none.
type demand struct {
	from, deadline time.Duration
	units, cost    int64
}

func newShared(r scheduler.Rate) *shared {
	return &shared{GCRA: scheduler.Must(scheduler.NewGCRA(r, 1)), start: time.Now()}
}

func (s *shared) Next(t time.Time, ahead, n int64) time.Time {
	if got := s.start.Add(s.got); t.Before(got) {
		t = got
	}
	return s.GCRA.Next(t, ahead, n)
}

func (s *shared) Notify(again func()) { s.again = again }
func (s *shared) Refusal() error      { return s.away }
func (s *shared) Close() error        { s.closed++; return nil }

func (s *shared) Demand(from time.Time, units, cost int64, deadline time.Time) {
	s.told = demand{from: from.Sub(s.start), units: units, cost: cost}
	if !deadline.IsZero() {
		s.told.deadline = deadline.Sub(s.start)
	}
}

// over are the ways in which a shared schedule may limit calls.
var over = map[string]func(t *testing.T, s *shared) pacer{
	"Shaper": func(t *testing.T, s *shared) pacer { return shaper.MustNewFrom(s) },
	"Shaper, beside a rate": func(t *testing.T, s *shared) pacer {
		return newShaper(t, scheduler.Unlimited, shaper.WithLimits(s))
	},
	"Group": func(t *testing.T, s *shared) pacer {
		return newKey(t, scheduler.Unlimited, shaper.WithSchedules(func(string) (scheduler.Scheduler, error) { return s, nil }))
	},
	"account": func(t *testing.T, s *shared) pacer {
		return newKey(t, scheduler.Unlimited, shaper.Under(shaper.MustNewFrom(s)))
	},
	"key": func(t *testing.T, s *shared) pacer {
		return newKey(t, scheduler.Unlimited, shaper.Under(newShaper(t, scheduler.Unlimited)),
			shaper.WithSchedules(func(string) (scheduler.Scheduler, error) { return s, nil }))
	},
}

// A shared schedule knows at any time what waits for it, and until when that is of use.
func TestSharedScheduleIsToldWhatWaits(t *testing.T) {
	for name, of := range over {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShared(scheduler.PerSecond(10))
				s.got = time.Hour
				p := of(t, s)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
				r := newRecorder()
				r.submit(func() error { return p.WaitN(ctx, 3) })
				if name != "account" { // of a key with limits of its own only the first call counts
					assert.Equal(t, demand{0, 2 * time.Hour, 3, 3}, s.told)
					r.submit(func() error { return p.WaitN(t.Context(), 2) })
					assert.Equal(t, demand{0, 2 * time.Hour, 5, 3}, s.told)
				} else {
					r.submit(func() error { return p.WaitN(t.Context(), 2) })
					assert.Equal(t, demand{0, 2 * time.Hour, 3, 3}, s.told)
				}
				pass(time.Second)
				cancel()
				synctest.Wait()
				assert.Equal(t, demand{time.Second, 0, 2, 2}, s.told)
				p.HoldUntil(r.start.Add(time.Minute))
				if name != "account" {
					assert.Equal(t, demand{time.Minute, 0, 2, 2}, s.told, "from when it may leave for all else")
				}
				p.Pause()
				if name != "account" {
					assert.Equal(t, demand{time.Second, 0, 0, 0}, s.told, "nothing that could leave")
				}
				p.Resume()
				assert.Equal(t, demand{time.Second, 0, 2, 2}, s.told)
				s.got = 2 * time.Second
				s.again()
				pass(2 * time.Second)
				assert.Zero(t, s.told.units)
			})
		})
	}
}

// What cannot leave is refused at once while the schedule says so: what comes, and what waits.
func TestScheduleThatRefuses(t *testing.T) {
	for name, of := range over {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShared(scheduler.PerSecond(10))
				p, r := of(t, s), newRecorder()
				for range 3 {
					r.submit(func() error { return p.WaitN(t.Context(), 1) })
				}
				pass(50 * ms)
				away := errors.New("store is away")
				s.away = away
				s.again()
				synctest.Wait()
				r.submit(func() error { return p.WaitN(t.Context(), 1) })
				for _, c := range r.calls[1:] {
					var refusal *shaper.Refusal
					require.ErrorAs(t, c.err, &refusal)
					require.ErrorIs(t, c.err, away)
					require.Equal(t, 50*ms, c.at)
				}
				require.False(t, p.AllowN(1))
				s.away = nil
				pass(time.Second)
				require.True(t, p.AllowN(1))
			})
		})
	}
}

// A call that cannot leave in time, as the schedule has learnt, is told so then.
func TestScheduleThatLearnsThatItIsTooLate(t *testing.T) {
	for name, of := range over {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShared(scheduler.PerSecond(10))
				p, r := of(t, s), newRecorder()
				require.True(t, p.AllowN(1))
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				for range 2 {
					r.submit(func() error { return p.WaitN(ctx, 1) })
				}
				r.submit(func() error { return p.WaitN(t.Context(), 1) })
				pass(50 * ms)
				s.got = time.Minute
				s.again()
				pass(2 * time.Minute)
				for _, c := range r.calls[:2] {
					require.ErrorIs(t, c.err, shaper.ErrDeadline)
					require.Equal(t, 50*ms, c.at)
				}
				require.NoError(t, r.calls[2].err)
				require.Equal(t, time.Minute, r.calls[2].at)
			})
		})
	}
}

// A schedule that holds something for the line gives it back when that is closed, or forgotten.
func TestScheduleIsClosedWithItsLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared(scheduler.PerSecond(10))
		require.NoError(t, shaper.MustNewFrom(s).Close())
		require.Equal(t, 1, s.closed)
		for name, opts := range map[string][]shaper.Option{
			"alone": nil, "under an account": {shaper.Under(newShaper(t, scheduler.Unlimited))},
		} {
			made := map[string]*shared{}
			g := newGroup[string](t, scheduler.Unlimited, append(opts, shaper.WithSchedules(func(k string) (scheduler.Scheduler, error) {
				made[k] = newShared(scheduler.PerSecond(10))
				return made[k], nil
			}))...)
			require.True(t, g.Allow("forgotten"))
			pass(time.Hour)
			require.Zero(t, g.Len(), name)
			require.True(t, g.Allow("remembered"))
			require.NoError(t, g.Close())
			require.Equal(t, 1, made["forgotten"].closed, name)
			require.Equal(t, 1, made["remembered"].closed, name)
		}
	})
}
