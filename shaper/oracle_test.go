package shaper_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/oracle"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// TestOracle compares thousands of random runs with a model in exact rationals:
// the same calls leave, are cancelled and are refused, and each leaves in the very
// nanosecond in which the exact instant lies.
func TestOracle(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	ambiguous.Store(0)
	defer shaper.ForcePrecise()()
	runs := 3000
	if testing.Short() {
		runs = 400
	}
	for i := range runs {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		synctest.Test(t, func(t *testing.T) { oracleRun(t, rng, fmt.Sprintf("seed %d run %d", seed, i)) })
		if t.Failed() {
			return
		}
	}
	assert.Less(t, ambiguous.Load(), int64(runs/100), "runs that prove nothing")
}

// ambiguous counts the runs in which an event met a departure by chance.
var ambiguous atomic.Int64

type oracleCall struct {
	real   *submitted
	model  *oracle.Call
	cancel context.CancelFunc
}

func randomRate(rng *rand.Rand) (units int64, period time.Duration) {
	return []int64{1, 3, 7, 60, 333}[rng.IntN(5)],
		[]time.Duration{time.Second, time.Second, time.Second, time.Minute, 250 * ms}[rng.IntN(5)]
}

func oracleRun(t *testing.T, rng *rand.Rand, name string) {
	late := rng.IntN(2) == 0
	units, period := randomRate(rng)
	if late && rng.IntN(2) == 0 {
		units, period = 333, 250*ms // so that several leave when a timer is late
	}
	burst := 1 + rng.IntN(2)*rng.IntN(6)
	tolerance := time.Duration(rng.IntN(2)) * 5 * ms
	capacity := []int{3, 8, 1024}[rng.IntN(3)]
	rate := scheduler.Per(units, period)

	r := newRecorder()
	m := oracle.NewLine(oracle.GCRA{T: oracle.Interval(units, period), Burst: int64(burst), Tolerance: tolerance}, capacity)
	opts := []shaper.Option{shaper.WithBurst(burst), shaper.WithTolerance(tolerance), shaper.WithQueue(capacity)}
	if rng.IntN(2) == 0 {
		opts = append(opts, shaper.WithPreciseTiming())
	}
	if late {
		m.Late = lateness(rng)
		opts = append(opts, shaper.WithClock(sometimesLate{clock.New(), r.start, m.Late}))
	}
	s := newShaper(t, rate, opts...)
	var calls []oracleCall

	interval := rate.Interval()
	for range 40 {
		if rng.IntN(3) > 0 {
			r.until(time.Since(r.start) + 1 + time.Duration(rng.Int64N(int64(2*interval))))
		}
		now := time.Since(r.start)
		at := oracle.Instant(int64(now))
		later := now + 1 + time.Duration(rng.Int64N(int64(6*interval)))
		switch rng.IntN(14) {
		case 0:
			units, _ = randomRate(rng)
			m.SetInterval(at, oracle.Interval(units, period))
			require.NoError(t, s.SetRate(scheduler.Per(units, period)))
		case 1:
			m.Pause(at)
			s.Pause()
		case 2, 3:
			m.Resume(at)
			s.Resume()
		case 4:
			m.Hold(at, oracle.Instant(int64(later)))
			s.HoldUntil(r.start.Add(later))
		case 5, 6, 7:
			if len(calls) > 0 {
				c := calls[rng.IntN(len(calls))]
				m.Cancel(at, c.model)
				c.cancel()
			}
		default:
			cost := 1 + rng.IntN(2)*rng.IntN(5)
			ctx, cancel := context.WithCancel(t.Context())
			c := oracleCall{cancel: cancel}
			if rng.IntN(4) == 0 {
				ctx, c.cancel = context.WithDeadline(t.Context(), r.start.Add(later))
				c.model = m.Arrive(at, int64(cost), oracle.Instant(int64(later)))
			} else {
				c.model = m.Arrive(at, int64(cost), nil)
			}
			defer cancel()
			c.real = r.submit(func() error { return s.WaitN(ctx, cost) })
			calls = append(calls, c)
		}
		synctest.Wait()
		conserved(t, s)
	}

	end := time.Since(r.start)
	if m.Ambiguous {
		ambiguous.Add(1)
		require.NoError(t, s.Close())
		return
	}
	m.Resume(oracle.Instant(int64(end)))
	s.Resume()
	end += 1000 * time.Hour
	m.Advance(oracle.Instant(int64(end)))
	r.until(end)
	conserved(t, s)

	for i, c := range calls {
		if got := outcome(c.real); got != c.model.Outcome {
			t.Fatalf("%s: call %d of %d: %v (%v), the model says %v", name, i, len(calls), got, c.real.err, c.model.Outcome)
		}
		if c.model.Outcome != oracle.Left {
			continue
		}
		if want := oracle.Ceil(c.model.At).Int64(); int64(c.real.at) != want {
			t.Fatalf("%s: call %d of %d left at %d ns, the model says %s (rate %v burst %d tolerance %v)",
				name, i, len(calls), c.real.at, c.model.At.FloatString(3), rate, burst, tolerance)
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
