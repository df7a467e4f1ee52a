package shaper_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
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

// TestOracle compares thousands of random runs with a model in exact rationals: the same
// calls leave, are cancelled and are refused, and each leaves in the very nanosecond in
// which the exact instant lies. More runs: SLUICE_RUNS=1000000.
func TestOracle(t *testing.T) {
	defer shaper.ForcePrecise()()
	runs, ambiguous := 0, 0
	trial.Run(t, 3000, func(t *testing.T, rng *rand.Rand) {
		runs++
		synctest.Test(t, func(t *testing.T) {
			if newOracleRun(t, rng).play() {
				ambiguous++
			}
		})
	})
	assert.LessOrEqual(t, ambiguous, 2+runs/100, "runs that prove nothing, as an event met a departure by chance")
}

type oracleCall struct {
	real     *submitted
	model    *oracle.Call
	cancel   context.CancelFunc
	place    bool
	released bool
}

func randomPeriod(rng *rand.Rand) time.Duration {
	return []time.Duration{time.Second, time.Second, time.Second, time.Minute, 250 * ms}[rng.IntN(5)]
}

// units returns those of a random rate.
func (o *oracleRun) units() int64 {
	if o.dense {
		return []int64{1000, 333, 1000, 10}[o.rng.IntN(4)]
	}
	return []int64{1, 3, 7, 60, 333}[o.rng.IntN(5)]
}

// An oracleRun lets the same happen to a Shaper and to the model.
type oracleRun struct {
	t        *testing.T
	rng      *rand.Rand
	r        *recorder
	s        *shaper.Shaper
	m        *oracle.Line
	dense    bool // lateness is long beside T
	period   time.Duration
	interval time.Duration // T at the start
	places   bool
	calls    []*oracleCall
	about    string
}

func newOracleRun(t *testing.T, rng *rand.Rand) *oracleRun {
	o := &oracleRun{t: t, rng: rng, r: newRecorder()}
	late := rng.IntN(3) > 0
	o.dense = late && rng.IntN(2) == 0
	units, period := o.units(), randomPeriod(rng)
	if o.dense {
		units, period = 1000, time.Second
	}
	burst := 1 + rng.IntN(2)*rng.IntN(6)
	tolerance := time.Duration(rng.IntN(2)) * 5 * ms
	if o.dense {
		tolerance = 5 * ms
	}
	capacity := []int{3, 8, 1024}[rng.IntN(3)]
	rate := scheduler.Per(units, period)
	o.period, o.interval = period, rate.Interval()
	o.m = oracle.NewLine(oracle.GCRA{T: oracle.Interval(units, period), Burst: int64(burst), Tolerance: tolerance}, capacity)
	opts := []shaper.Option{shaper.WithBurst(burst), shaper.WithTolerance(tolerance), shaper.WithQueue(capacity)}
	if o.places = rng.IntN(3) == 0; o.places {
		o.m.Places = 1 + rng.IntN(2)
		opts = append(opts, shaper.WithMaxInFlight(o.m.Places))
	}
	if rng.IntN(3) == 0 {
		overtake := time.Duration(rng.Int64N(int64(8 * o.interval)))
		o.m.Classes, o.m.Overtake = 1+rng.IntN(4), oracle.Instant(int64(overtake))
		if rng.IntN(3) == 0 {
			overtake, o.m.Overtake = shaper.Strict, oracle.Instant(math.MaxInt64)
		}
		opts = append(opts, shaper.WithClasses(o.m.Classes, overtake))
	}
	if rng.IntN(2) == 0 {
		opts = append(opts, shaper.WithPreciseTiming())
	}
	if late {
		o.m.Late = lateness(rng)
		opts = append(opts, shaper.WithClock(sometimesLate{clock.New(), o.r.start, o.m.Late}))
	}
	o.s = newShaper(t, rate, opts...)
	o.about = fmt.Sprintf("rate %v burst %d tolerance %v queue %d places %d classes %d overtake %v late %v",
		rate, burst, tolerance, capacity, o.m.Places, o.m.Classes, o.m.Overtake, late)
	return o
}

// play reports whether the run proves nothing.
func (o *oracleRun) play() (ambiguous bool) {
	for range 40 {
		if o.rng.IntN(3) > 0 {
			o.r.until(o.now() + 1 + time.Duration(o.rng.Int64N(int64(2*o.interval))))
		}
		o.step()
		synctest.Wait()
		conserved(o.t, o.s)
	}
	o.end()
	if o.m.Ambiguous {
		require.NoError(o.t, o.s.Close())
		return true
	}
	o.compare()
	return false
}

func (o *oracleRun) now() time.Duration { return time.Since(o.r.start) }

// soon returns an instant some intervals from now.
func (o *oracleRun) soon() time.Duration {
	return o.now() + 1 + time.Duration(o.rng.Int64N(int64(6*o.interval)))
}

// cost returns that of a call or a charge; one in twenty is far above the burst.
func (o *oracleRun) cost() int {
	if o.rng.IntN(20) == 0 {
		return 5 + o.rng.IntN(40)
	}
	return 1 + o.rng.IntN(2)*o.rng.IntN(5)
}

func (o *oracleRun) step() {
	at, s, m := oracle.Instant(int64(o.now())), o.s, o.m
	switch op := o.rng.IntN(20); op {
	case 0:
		units := o.units()
		m.SetInterval(at, oracle.Interval(units, o.period))
		require.NoError(o.t, s.SetRate(scheduler.Per(units, o.period)))
	case 1, 2, 3, 4, 5, 6, 7:
		o.disturb(op)
	case 8:
		cost := o.cost()
		m.Charge(at, int64(cost))
		s.Charge(cost)
	case 9:
		cost := o.cost()
		want, got := m.Allow(at, int64(cost)), s.AllowN(cost)
		if !m.Ambiguous {
			require.Equal(o.t, want, got, "Allow(%d) at %v: %s", cost, o.now(), o.about)
		}
	case 10:
		want, got := oracle.Ceil(m.Delay(at)).Int64(), int64(s.Delay())
		if !m.Ambiguous {
			require.InDelta(o.t, want, got, 1, "Delay at %v: %s", o.now(), o.about) // ends within the same nanosecond
		}
	case 11, 12:
		o.release(o.rng.IntN(len(o.calls) + 1))
	default:
		o.arrive()
	}
}

// disturb pauses, resumes, holds, or has one of the calls given up.
func (o *oracleRun) disturb(op int) {
	at, s, m := oracle.Instant(int64(o.now())), o.s, o.m
	switch op {
	case 1:
		m.Pause(at)
		s.Pause()
	case 2, 3:
		m.Resume(at)
		s.Resume()
	case 4:
		until := o.soon()
		m.Hold(at, oracle.Instant(int64(until)))
		s.HoldUntil(o.r.start.Add(until))
	case 5, 6, 7:
		if len(o.calls) > 0 {
			c := o.calls[o.rng.IntN(len(o.calls))]
			m.Cancel(at, c.model)
			c.cancel()
		}
	}
}

func (o *oracleRun) arrive() {
	at := oracle.Instant(int64(o.now()))
	cost := o.cost()
	c := &oracleCall{place: o.places && o.rng.IntN(2) == 0}
	ask := oracle.Ask{Cost: int64(cost), Place: c.place}
	ctx, cancel := context.WithCancel(o.t.Context())
	if o.rng.IntN(4) == 0 {
		deadline := o.soon()
		ctx, cancel = context.WithDeadline(o.t.Context(), o.r.start.Add(deadline))
		ask.Deadline = oracle.Instant(int64(deadline))
	}
	if o.m.Classes > 0 {
		// One in four states none, and one beyond the last counts as the last.
		if class := o.rng.IntN(o.m.Classes + 2); class <= o.m.Classes {
			ctx, ask.Class = shaper.WithClass(ctx, class), min(class, o.m.Classes-1)
		} else {
			ask.Class = o.m.Classes - 1
		}
	}
	c.model = o.m.Arrive(at, ask)
	c.cancel = cancel
	o.t.Cleanup(cancel)
	wait := o.s.WaitN
	if c.place {
		wait = o.s.Acquire
	}
	c.real = o.r.submit(func() error { return wait(ctx, cost) })
	o.calls = append(o.calls, c)
}

// release gives a place back, if there is one among the calls from the i-th on.
func (o *oracleRun) release(i int) bool {
	o.m.Advance(oracle.Instant(int64(o.now())))
	for ; i < len(o.calls); i++ {
		c := o.calls[i]
		if c.place && !c.released && c.model.Outcome == oracle.Left && c.real.ended && c.real.err == nil {
			c.released = true
			o.m.Release(oracle.Instant(int64(o.now())))
			o.s.Release()
			synctest.Wait()
			return true
		}
	}
	return false
}

// end lets every call that waits come to its end.
func (o *oracleRun) end() {
	o.m.Resume(oracle.Instant(int64(o.now())))
	o.s.Resume()
	for more := true; more && !o.m.Ambiguous; {
		o.r.until(o.now() + 1000*time.Hour)
		more = o.release(0)
	}
	conserved(o.t, o.s)
}

func (o *oracleRun) compare() {
	for i, c := range o.calls {
		got := outcome(c.real)
		require.Equal(o.t, c.model.Outcome, got, "call %d of %d (%v): %s", i, len(o.calls), c.real.err, o.about)
		if got != oracle.Left {
			continue
		}
		if want := oracle.Ceil(c.model.At).Int64(); int64(c.real.at) != want {
			o.t.Fatalf("call %d of %d left at %d ns, the model says %s (%s)",
				i, len(o.calls), c.real.at, c.model.At.FloatString(3), o.about)
		}
	}
}

// lateness returns a rule for how late timers are, by the instant that they were set
// for: often on time, else by less or by more than a tolerance.
func lateness(rng *rand.Rand) func(due int64) time.Duration {
	salt := rng.Uint64()
	return func(due int64) time.Duration {
		rng := rand.New(rand.NewPCG(salt, uint64(due)))
		if rng.IntN(3) == 0 {
			return 0
		}
		return time.Duration(rng.Int64N(int64(12 * ms)))
	}
}

// sometimesLate is the clock of the bubble with such timers.
type sometimesLate struct {
	clock.Clock
	start time.Time
	late  func(due int64) time.Duration
}

func (l sometimesLate) AfterFunc(d time.Duration, f func()) *clock.Timer {
	return l.Clock.AfterFunc(d+l.late(int64(time.Since(l.start)+d)), f)
}

func outcome(c *submitted) oracle.Outcome {
	var refusal *shaper.Refusal
	switch {
	case !c.ended:
		return oracle.Waiting
	case c.err == nil:
		return oracle.Left
	case errors.As(c.err, &refusal):
		return oracle.Refused
	}
	return oracle.Cancelled
}
