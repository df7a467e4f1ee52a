package shaper_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/oracle"
	"github.com/sluice-go/sluice/internal/trial"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// A quiet schedule is closed for some time again and again: a partner's maintenance, or
// quiet hours. It is open at start.
type quiet struct {
	start    time.Time
	open     time.Duration // from start, and from each end of a closed time
	shut     time.Duration
	breaches []time.Duration // departures in a closed time, since start
}

func (q *quiet) Next(t time.Time, _, n int64) time.Time {
	return t.Add(time.Duration(q.opens(int64(t.Sub(q.start)))) - t.Sub(q.start))
}

func (q *quiet) Commit(_, left time.Time, _ int64) {
	if at := left.Sub(q.start); q.opens(int64(at)) != int64(at) {
		q.breaches = append(q.breaches, at)
	}
}

func (q *quiet) MaxCost() int64 { return math.MaxInt64 }

// FreshAt implements scheduler.Forgettable: departures leave no trace.
func (q *quiet) FreshAt() (time.Time, bool) { return q.start, true }

// opens returns the first instant, not before at, that is in no closed time.
func (q *quiet) opens(at int64) int64 {
	period := int64(q.open + q.shut)
	if into := at % period; into >= int64(q.open) {
		return at - into + period
	}
	return at
}

// every asks its limits again until one instant suits them all, in whatever order they come.
type every []scheduler.Scheduler

func (e every) Next(t time.Time, ahead, n int64) time.Time {
	if ahead > 0 { // a lower bound: each limit alone, from the first departure on
		t = e.Next(t, 0, 1)
		next := t
		for _, limit := range e {
			if at := limit.Next(t, ahead, n); at.After(next) {
				next = at
			}
		}
		return next
	}
	for {
		next := t
		for _, limit := range e {
			next = limit.Next(next, 0, n)
		}
		if next.Equal(t) {
			return t
		}
		t = next
	}
}

func (e every) Commit(due, left time.Time, n int64) {
	for _, limit := range e {
		limit.Commit(due, left, n)
	}
}

func (e every) MaxCost() int64 { return math.MaxInt64 }

func (e every) Forfeit(t time.Time, keep int64) {
	for _, limit := range e {
		if g, ok := limit.(*scheduler.GCRA); ok {
			g.Forfeit(t, keep)
		}
	}
}

func (e every) Forfeited(t time.Time, keep int64) scheduler.Scheduler {
	other := slices.Clone(e)
	for i, limit := range e {
		if g, ok := limit.(*scheduler.GCRA); ok {
			other[i] = g.Forfeited(t, keep)
		}
	}
	return other
}

var _ scheduler.Forfeiter = every(nil)

func (e every) Tolerance() (longest time.Duration) {
	for _, limit := range e {
		if g, ok := limit.(*scheduler.GCRA); ok {
			longest = g.Tolerance()
		}
	}
	return longest
}

// closedLines builds a Shaper with a GCRA and closed times in every way that there is.
var closedLines = map[string]func(g *scheduler.GCRA, q *quiet, opts ...shaper.Option) (*shaper.Shaper, error){
	"limits": func(g *scheduler.GCRA, q *quiet, opts ...shaper.Option) (*shaper.Shaper, error) {
		return shaper.New(g.Rate(), append(opts, shaper.WithBurst(int(g.Burst())), shaper.WithTolerance(g.Tolerance()), shaper.WithLimits(q))...)
	},
	"All": func(g *scheduler.GCRA, q *quiet, opts ...shaper.Option) (*shaper.Shaper, error) {
		return shaper.NewFrom(scheduler.All(g, q), opts...)
	},
	"All, hours first": func(g *scheduler.GCRA, q *quiet, opts ...shaper.Option) (*shaper.Shaper, error) {
		return shaper.NewFrom(scheduler.All(q, g), opts...)
	},
	"hours first": func(g *scheduler.GCRA, q *quiet, opts ...shaper.Option) (*shaper.Shaper, error) {
		return shaper.NewFrom(every{q, g}, opts...)
	},
	"hours last": func(g *scheduler.GCRA, q *quiet, opts ...shaper.Option) (*shaper.Shaper, error) {
		return shaper.NewFrom(every{g, q}, opts...)
	},
}

// A quietLine is 1 a minute, burst 2, that is open from 0 to 1 h, closed to 9 h, and so on.
// Its first timer, if there is one, fires two hours late.
type quietLine struct {
	*recorder
	t *testing.T
	s *shaper.Shaper
	q *quiet
}

func forEachQuietLine(t *testing.T, late time.Duration, f func(l quietLine), opts ...shaper.Option) {
	for name, build := range closedLines {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRecorder()
				q := &quiet{start: r.start, open: time.Hour, shut: 8 * time.Hour}
				g, err := scheduler.NewGCRA(scheduler.PerMinute(1), 2, scheduler.WithTolerance(5*ms))
				require.NoError(t, err)
				s, err := build(g, q, append(opts, shaper.WithClock(lateOnce(late)))...)
				require.NoError(t, err)
				f(quietLine{r, t, s, q})
				assert.Empty(t, q.breaches, "left in a closed time")
				conserved(t, s)
			})
		})
	}
}

const (
	closes = time.Hour
	opens  = 9 * time.Hour
)

// With timers that are on time a line stops for the closed time, and goes on with what has
// been saved up meanwhile.
func TestLineStopsForAClosedTime(t *testing.T) {
	forEachQuietLine(t, 0, func(l quietLine) {
		l.until(closes - 61*time.Second)
		for range 6 {
			l.wait(l.t.Context(), l.s)
		}
		pass(24 * time.Hour)
		assert.Equal(l.t, []time.Duration{closes - 61*time.Second, closes - 61*time.Second, closes - time.Second,
			opens, opens, opens + time.Minute}, l.left())
	})
}

// Alone, a schedule with closed times lets all leave at their end.
func TestClosedTimeAlone(t *testing.T) {
	for _, late := range []time.Duration{0, 2 * time.Hour, 9 * time.Hour} { // the last is late into the next closed time
		synctest.Test(t, func(t *testing.T) {
			r := newRecorder()
			q := &quiet{start: r.start, open: time.Hour, shut: 8 * time.Hour}
			s, err := shaper.NewFrom(q, shaper.WithClock(lateOnce(late)))
			require.NoError(t, err)
			r.wait(t.Context(), s)
			r.until(closes)
			r.wait(t.Context(), s)
			r.wait(t.Context(), s)
			assert.False(t, s.Allow())
			assert.Equal(t, opens-closes, s.Delay())
			pass(48 * time.Hour)
			end := map[time.Duration]time.Duration{0: opens, 2 * time.Hour: 2 * opens, 9 * time.Hour: 2 * opens}[late]
			assert.Equal(t, []time.Duration{0, end, end}, r.left())
			assert.Empty(t, q.breaches)
		})
	}
}

// busy has two calls leave and n more wait, of which the first is due half a minute before
// the closed time. Its timer is late.
func (l quietLine) busy(n int) {
	l.until(closes - 90*time.Second)
	for range 2 + n {
		l.wait(l.t.Context(), l.s)
	}
}

var busyLeft = steps(closes-90*time.Second, 0, 2)

// A timer that was set for an open instant and fires in a closed time lets no call leave
// then. The calls leave when that ends, and what they missed is lost but for the burst.
func TestLateTimerFiresInAClosedTime(t *testing.T) {
	forEachQuietLine(t, 2*time.Hour, func(l quietLine) {
		l.busy(4)
		pass(24 * time.Hour)
		assert.Equal(l.t, append(busyLeft, opens, opens, opens+time.Minute, opens+2*time.Minute), l.left())
	})
}

// A timer that is late beyond the end of the closed time lets the calls leave when it fires.
func TestLateTimerFiresAfterAClosedTime(t *testing.T) {
	forEachQuietLine(t, 8*time.Hour+10*time.Minute, func(l quietLine) {
		l.busy(3)
		pass(24 * time.Hour)
		fires := closes - 30*time.Second + 8*time.Hour + 10*time.Minute
		assert.Equal(l.t, append(busyLeft, fires, fires, fires+time.Minute-5*ms), l.left())
	})
}

// Newcomers of every kind come while a call is overdue in a closed time. They neither leave
// nor let it leave.
func TestNewcomersInAClosedTime(t *testing.T) {
	forEachQuietLine(t, 2*time.Hour, func(l quietLine) {
		l.busy(1)
		l.until(closes)
		assert.False(l.t, l.s.Allow(), "at the very instant at which it begins")
		l.until(closes + time.Hour)
		assert.False(l.t, l.s.Allow())
		assert.False(l.t, l.s.LeaveNow(1))
		l.wait(l.t.Context(), l.s)
		l.until(opens - 1)
		assert.False(l.t, l.s.Allow())
		l.wait(l.t.Context(), l.s)
		pass(24 * time.Hour)
		assert.Equal(l.t, append(busyLeft, opens, opens, opens+time.Minute), l.left())
	})
}

// A place becomes free in a closed time.
func TestPlaceIsFreedInAClosedTime(t *testing.T) {
	forEachQuietLine(t, 0, func(l quietLine) {
		l.acquire(l.t.Context(), l.s)
		l.until(30 * time.Minute)
		l.acquire(l.t.Context(), l.s)
		l.wait(l.t.Context(), l.s)
		l.until(2 * time.Hour)
		l.s.Release()
		pass(time.Hour)
		assert.EqualValues(l.t, 2, l.s.Stats().Waiting)
		pass(24 * time.Hour)
		assert.Equal(l.t, []time.Duration{0, opens, opens}, l.left())
	}, shaper.WithMaxInFlight(1))
}

// The head is overdue in a closed time, and gives up.
func TestHeadGivesUpInAClosedTime(t *testing.T) {
	forEachQuietLine(t, 2*time.Hour, func(l quietLine) {
		l.until(closes - 90*time.Second)
		l.waitN(l.t.Context(), l.s, 2)
		head, giveUp := context.WithCancel(l.t.Context())
		l.wait(head, l.s)
		l.wait(l.t.Context(), l.s)
		l.wait(l.t.Context(), l.s)
		l.until(closes + time.Hour)
		giveUp()
		pass(time.Hour)
		assert.EqualValues(l.t, 2, l.s.Stats().Waiting)
		pass(24 * time.Hour)
		assert.Equal(l.t, []time.Duration{closes - 90*time.Second, opens, opens}, l.left())
	})
}

// A hold or a pause ends in a closed time. The first call leaves when that ends. The hours
// in between have filled the bucket again.
func TestGateOpensInAClosedTime(t *testing.T) {
	for name, gate := range map[string]func(l quietLine){
		"hold":  func(l quietLine) { l.s.HoldUntil(l.start.Add(closes + 2*time.Hour)) },
		"pause": func(l quietLine) { l.s.Pause() },
	} {
		t.Run(name, func(t *testing.T) {
			forEachQuietLine(t, 2*time.Hour, func(l quietLine) {
				l.busy(3)
				l.until(closes + 10*time.Minute)
				gate(l)
				l.until(closes + 2*time.Hour)
				if name == "pause" {
					l.s.Resume()
				}
				l.until(closes + 3*time.Hour)
				assert.EqualValues(l.t, 3, l.s.Stats().Waiting)
				pass(24 * time.Hour)
				assert.Equal(l.t, append(busyLeft, opens, opens, opens+time.Minute), l.left())
			})
		})
	}
}

// A new rate, a share of it and a charge look at the line again, in a closed time, too.
func TestChangesInAClosedTime(t *testing.T) {
	forEachQuietLine(t, 2*time.Hour, func(l quietLine) {
		l.busy(2)
		l.until(closes + 10*time.Minute)
		if err := l.s.SetRate(scheduler.PerMinute(2)); err != nil {
			l.t.Skip("its rate cannot be set")
		}
		require.NoError(l.t, l.s.Scale(1, 2))
		l.s.Charge(1)
		l.q.breaches = nil // what is charged has left without asking
		pass(time.Hour)
		assert.EqualValues(l.t, 2, l.s.Stats().Waiting)
		pass(24 * time.Hour)
		assert.Equal(l.t, append(busyLeft, opens, opens), l.left())
	})
}

// A closedRun lets the same random things happen to a Shaper with closed times and to the
// model, with timers that are late by as much as a closed time is long.
type closedRun struct {
	*oracleRun
	q     *quiet
	rated bool // its rate can be set
}

// Random runs with closed times agree with the model: no call leaves in a closed time, each
// leaves at the earliest instant at which the line may look at it, in order.
func TestClosedTimesAgreeWithModel(t *testing.T) {
	runs, ambiguous := 0, 0
	trial.Run(t, 800, func(t *testing.T, rng *rand.Rand) {
		runs++
		synctest.Test(t, func(t *testing.T) {
			if newClosedRun(t, rng).play() {
				ambiguous++
			}
		})
	})
	assert.LessOrEqual(t, ambiguous, 2+runs/20, "runs that prove nothing, as an event met a departure by chance")
}

func newClosedRun(t *testing.T, rng *rand.Rand) *closedRun {
	o := &oracleRun{t: t, rng: rng, r: newRecorder(), period: time.Second}
	units, burst := []int64{1, 3, 7, 100, 1000}[rng.IntN(5)], 1+rng.IntN(2)*rng.IntN(5)
	tolerance := []time.Duration{0, 5 * ms, time.Hour}[rng.IntN(3)]
	o.interval = scheduler.PerSecond(units).Interval()
	some := func(most int) time.Duration { return 1 + time.Duration(rng.Int64N(int64(most)*int64(o.interval))) }
	c := &closedRun{oracleRun: o, q: &quiet{start: o.r.start, open: some(12), shut: some(12)}}

	o.m = oracle.NewLine(oracle.GCRA{T: oracle.Interval(units, time.Second), Burst: int64(burst), Tolerance: tolerance}, 1<<30)
	o.m.Opens = c.q.opens
	opts := []shaper.Option{shaper.WithQueue(1 << 30)}
	if o.places = rng.IntN(3) == 0; o.places {
		o.m.Places = 1 + rng.IntN(2)
		opts = append(opts, shaper.WithMaxInFlight(o.m.Places))
	}
	if rng.IntN(3) > 0 {
		o.m.Late = longLateness(rng, c.q.open+c.q.shut)
		opts = append(opts, shaper.WithClock(sometimesLate{clock.New(), o.r.start, o.m.Late}))
	}
	g, err := scheduler.NewGCRA(scheduler.PerSecond(units), int64(burst), scheduler.WithTolerance(tolerance))
	require.NoError(t, err)
	kind := []string{"limits", "All", "All, hours first", "hours first", "hours last"}[rng.IntN(5)]
	c.rated = kind == "limits"
	o.s, err = closedLines[kind](g, c.q, opts...)
	require.NoError(t, err)
	o.about = fmt.Sprintf("%s: %d/s burst %d tolerance %v places %d open %v shut %v late %v",
		kind, units, burst, tolerance, o.m.Places, c.q.open, c.q.shut, o.m.Late != nil)
	return c
}

// longLateness is lateness, but for long: a process that was stopped.
func longLateness(rng *rand.Rand, most time.Duration) func(due int64) time.Duration {
	salt := rng.Uint64()
	return func(due int64) time.Duration {
		rng := rand.New(rand.NewPCG(salt, uint64(due)))
		switch rng.IntN(4) {
		case 0:
			return 0
		case 1:
			return time.Duration(rng.Int64N(int64(12 * ms)))
		}
		return time.Duration(rng.Int64N(int64(most)))
	}
}

// play reports whether the run proves nothing.
func (c *closedRun) play() (ambiguous bool) {
	for range 40 {
		if c.rng.IntN(3) > 0 {
			c.r.until(c.now() + 1 + time.Duration(c.rng.Int64N(int64(4*c.interval))))
		}
		c.step()
		synctest.Wait()
		conserved(c.t, c.s)
	}
	c.end()
	if c.m.Ambiguous {
		require.NoError(c.t, c.s.Close())
		return true
	}
	c.compare()
	require.Empty(c.t, c.q.breaches, c.about)
	return false
}

func (c *closedRun) step() {
	at, s, m := oracle.Instant(int64(c.now())), c.s, c.m
	switch op := c.rng.IntN(20); op {
	case 0:
		if c.rated {
			units := []int64{1, 3, 7, 100, 1000}[c.rng.IntN(5)]
			m.SetInterval(at, oracle.Interval(units, time.Second))
			require.NoError(c.t, s.SetRate(scheduler.PerSecond(units)))
		}
	case 1, 2, 3, 4, 5, 6, 7:
		c.disturb(op)
	case 8:
		if c.q.opens(int64(c.now())) == int64(c.now()) { // another process keeps to the hours, too
			cost := c.cost()
			m.Charge(at, int64(cost))
			s.Charge(cost)
		}
	case 9, 10:
		cost := c.cost()
		want, got := m.Allow(at, int64(cost)), s.AllowN(cost)
		if !m.Ambiguous {
			require.Equal(c.t, want, got, "Allow(%d) at %v: %s", cost, c.now(), c.about)
		}
	case 11, 12:
		c.release(c.rng.IntN(len(c.calls) + 1))
	default:
		c.arrive()
	}
}

// arrive is for a call without a deadline: what is told about one behind others is a lower
// bound where there are closed times.
func (c *closedRun) arrive() {
	call := &oracleCall{place: c.places && c.rng.IntN(2) == 0}
	cost := c.cost()
	ctx, cancel := context.WithCancel(c.t.Context())
	c.t.Cleanup(cancel)
	call.cancel = cancel
	call.model = c.m.Arrive(oracle.Instant(int64(c.now())), oracle.Ask{Cost: int64(cost), Place: call.place})
	wait := c.s.WaitN
	if call.place {
		wait = c.s.Acquire
	}
	call.real = c.r.submit(func() error { return wait(ctx, cost) })
	c.calls = append(c.calls, call)
}

// With timers that are exact the tolerance changes nothing beside closed times, either.
func TestPromise15ToleranceIsForLateTimersOnlyBesideClosedTimes(t *testing.T) {
	trial.Run(t, 200, func(t *testing.T, rng *rand.Rand) {
		synctest.Test(t, func(t *testing.T) {
			rate := toleranceRate(rng)
			r := &toleranceRun{t: t, rng: rng, start: time.Now(), t0: rate.Interval(), burst: 1 + rng.IntN(2)*rng.IntN(5)}
			q := quiet{start: r.start, open: 1 + r.upTo(12), shut: 1 + r.upTo(12)}
			kind := []string{"limits", "All", "hours first", "hours last"}[rng.IntN(4)]
			var opts []shaper.Option
			if r.places = rng.IntN(2) == 0; r.places {
				opts = append(opts, shaper.WithMaxInFlight(1+rng.IntN(2)))
			}
			for _, tolerance := range []time.Duration{0, 5 * ms, 3 * time.Hour} {
				g, err := scheduler.NewGCRA(rate, int64(r.burst), scheduler.WithTolerance(tolerance))
				require.NoError(t, err)
				hours := q
				s, err := closedLines[kind](g, &hours, opts...)
				require.NoError(t, err)
				r.pacers = append(r.pacers, s)
			}
			r.about = fmt.Sprintf("%s: rate %v burst %d places %v open %v shut %v", kind, rate, r.burst, r.places, q.open, q.shut)
			r.play()
		})
	})
}

// What a gate forfeits has been saved up again once the bucket is full, and a new rate does
// not change that: also where the rate is not the only limit.
func TestRateChangesLongAfterAGateBesideALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10), shaper.WithBurst(3),
			shaper.WithLimits(must(scheduler.NewSlidingLog(1000, time.Hour))))
		r := newRecorder()
		s.Pause()
		r.until(time.Second)
		s.Resume()
		r.until(2 * time.Second) // full since 1.2 s
		require.NoError(t, s.SetRate(scheduler.PerMinute(1)))
		for range 4 {
			r.wait(t.Context(), s)
		}
		pass(time.Hour)
		assert.Equal(t, append(steps(2*time.Second, 0, 3), time.Minute+2*time.Second), r.left())
	})
}

// A bucket that is another limit has saved nothing up while the gate was shut, whatever
// becomes of the rate.
func TestRateChangesAfterAGateBesideABucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10), shaper.WithBurst(3),
			shaper.WithLimits(must(scheduler.NewGCRA(scheduler.PerMinute(1), 3))))
		r := newRecorder()
		s.Pause()
		r.until(time.Hour)
		s.Resume()
		pass(time.Second)
		require.NoError(t, s.SetRate(scheduler.PerSecond(100)))
		for range 2 {
			r.wait(t.Context(), s)
		}
		pass(time.Hour)
		// The bucket has a unit again a minute after the gate has opened; the first call is it.
		assert.Equal(t, []time.Duration{time.Hour + time.Second, time.Hour + time.Minute}, r.left())
	})
}
