package shaper_test

import (
	"context"
	"fmt"
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

// TestUnderOracle compares random runs of keys under an account, and of the account's own calls,
// with a model in exact rationals: the same calls leave, are cancelled and are refused, and each
// leaves in the very nanosecond in which the exact instant lies. More runs: SLUICE_RUNS=100000.
func TestUnderOracle(t *testing.T) {
	runs, ambiguous := 0, 0
	trial.Run(t, 1500, func(t *testing.T, rng *rand.Rand) {
		runs++
		synctest.Test(t, func(t *testing.T) {
			if newUnderRun(t, rng).play() {
				ambiguous++
			}
		})
	})
	assert.LessOrEqual(t, ambiguous, 2+runs/30, "runs that prove nothing, as an event met a departure by chance")
}

// An underRun lets the same happen to an account with keys and to the model.
type underRun struct {
	t        *testing.T
	rng      *rand.Rand
	r        *recorder
	account  *shaper.Shaper
	group    *shaper.Group[int]
	m        *oracle.Account
	interval time.Duration    // T of the account at the start
	ofKeys   scheduler.Rate   // that the keys are made with
	opened   [5]time.Duration // when each was held last
	places   bool
	calls    []*underCall
	about    string
}

type underCall struct {
	oracleCall
	key int
}

// pacerOf returns key i; 0 is the account itself.
func (u *underRun) pacerOf(i int) pacer {
	if i == 0 {
		return u.account
	}
	return keyOf{u.t, u.group, i}
}

func underRate(rng *rand.Rand) (int64, scheduler.Rate) {
	units := []int64{1, 3, 7, 20, 60, 333, 1000}[rng.IntN(7)]
	return units, scheduler.PerSecond(units)
}

func newUnderRun(t *testing.T, rng *rand.Rand) *underRun {
	u := &underRun{t: t, rng: rng, r: newRecorder()}
	limits := func(places int) (*oracle.Limits, scheduler.Rate, []shaper.Option) {
		units, rate := underRate(rng)
		burst := 1 + rng.IntN(2)*rng.IntN(6)
		tolerance := time.Duration(rng.IntN(2)) * 5 * ms
		opts := []shaper.Option{shaper.WithBurst(burst), shaper.WithTolerance(tolerance)}
		if places > 0 {
			opts = append(opts, shaper.WithMaxInFlight(places))
		}
		u.about += fmt.Sprintf("; rate %v burst %d tolerance %v places %d", rate, burst, tolerance, places)
		g := oracle.GCRA{T: oracle.Interval(units, time.Second), Burst: int64(burst), Tolerance: tolerance}
		return oracle.NewLimits(g, places), rate, opts
	}
	places := func() int { return rng.IntN(2) * (1 + rng.IntN(2)) }
	capacity := []int{3, 6, 1024}[rng.IntN(3)]
	u.places = rng.IntN(2) == 0
	ofAccount := 0
	if u.places {
		ofAccount = places()
	}
	l, rate, opts := limits(ofAccount)
	u.interval = rate.Interval()
	opts = append(opts, shaper.WithQueue(capacity))
	u.m = oracle.NewAccount(l, capacity, &oracle.Key{})
	if rng.IntN(3) == 0 {
		overtake := time.Duration(rng.Int64N(int64(8 * u.interval)))
		if rng.IntN(3) == 0 {
			overtake = shaper.Strict
		}
		u.m.Classes, u.m.Overtake = 1+rng.IntN(4), oracle.Instant(int64(overtake))
		opts = append(opts, shaper.WithClasses(u.m.Classes, overtake))
		u.about += fmt.Sprintf("; %d classes, overtake %v", u.m.Classes, overtake)
	}
	if rng.IntN(3) > 0 {
		u.m.Late = lateness(rng)
		opts = append(opts, shaper.WithClock(sometimesLate{clock.New(), u.r.start, u.m.Late}))
	}
	u.account = newShaper(t, rate, opts...)
	ofKey := 0
	if u.places {
		ofKey = places()
	}
	l, rate, opts = limits(ofKey)
	opts = append(opts, shaper.Under(u.account))
	ofEach := rng.IntN(2) * (1 + rng.IntN(4))
	if ofEach > 0 {
		opts = append(opts, shaper.WithQueue(ofEach))
	}
	u.ofKeys, u.group = rate, newGroup[int](t, rate, opts...)
	for range 1 + rng.IntN(4) {
		u.m.Keys = append(u.m.Keys, &oracle.Key{Limits: oracle.NewLimits(l.GCRA, l.Places), Capacity: ofEach})
	}
	u.about += fmt.Sprintf("; %d keys, lines of %d and %d, late %v", len(u.m.Keys), capacity, ofEach, u.m.Late != nil)
	return u
}

// play reports whether the run proves nothing.
func (u *underRun) play() (ambiguous bool) {
	for range 50 {
		if u.rng.IntN(3) > 0 {
			u.r.until(u.now() + 1 + time.Duration(u.rng.Int64N(int64(2*u.interval))))
		}
		u.step()
		synctest.Wait()
	}
	u.end()
	if u.m.Ambiguous {
		require.NoError(u.t, u.account.Close())
		return true
	}
	for i, c := range u.calls {
		got := outcome(c.real)
		require.Equal(u.t, c.model.Outcome, got, "call %d of %d, of key %d (%v)%s", i, len(u.calls), c.key, c.real.err, u.about)
		if got != oracle.Left {
			continue
		}
		if want := oracle.Ceil(c.model.At).Int64(); int64(c.real.at) != want {
			u.t.Fatalf("call %d of %d, of key %d, left at %d ns, the model says %s%s",
				i, len(u.calls), c.key, c.real.at, c.model.At.FloatString(3), u.about)
		}
	}
	return false
}

func (u *underRun) now() time.Duration { return time.Since(u.r.start) }
func (u *underRun) soon() time.Duration {
	return u.now() + 1 + time.Duration(u.rng.Int64N(int64(6*u.interval)))
}

func (u *underRun) cost() int {
	if u.rng.IntN(20) == 0 {
		return 5 + u.rng.IntN(40)
	}
	return 1 + u.rng.IntN(2)*u.rng.IntN(5)
}

func (u *underRun) step() {
	at, m := oracle.Instant(int64(u.now())), u.m
	i := u.rng.IntN(len(m.Keys))
	k, p := m.Keys[i], u.pacerOf(i)
	switch op := u.rng.IntN(24); op {
	case 0:
		units, rate := underRate(u.rng)
		if rate == u.ofKeys {
			return // an idle key has it already, so that nothing is looked at
		}
		m.SetInterval(at, k, oracle.Interval(units, time.Second))
		require.NoError(u.t, p.SetRate(rate))
	case 1:
		m.Pause(at, k)
		p.Pause()
	case 2, 3, 4:
		m.Resume(at, k)
		p.Resume()
		u.opened[i] = u.now()
	case 5:
		until := u.soon()
		m.Hold(at, k, oracle.Instant(int64(until)))
		p.HoldUntil(u.r.start.Add(until))
		u.opened[i] = max(u.opened[i], until)
	case 6, 7, 8:
		if len(u.calls) > 0 {
			c := u.calls[u.rng.IntN(len(u.calls))]
			m.Cancel(at, m.Keys[c.key], c.model)
			c.cancel()
		}
	case 9:
		cost := u.cost()
		m.Charge(at, k, int64(cost))
		p.Charge(cost)
	case 10:
		cost := u.cost()
		want, got := m.Allow(at, k, int64(cost)), p.AllowN(cost)
		if !m.Ambiguous {
			require.Equal(u.t, want, got, "Allow(%d) of key %d at %v%s", cost, i, u.now(), u.about)
		}
	case 11:
		want, got := oracle.Ceil(m.Delay(at, k)).Int64(), int64(p.Delay())
		if !m.Ambiguous {
			require.InDelta(u.t, want, got, 1, "Delay of key %d at %v%s", i, u.now(), u.about)
		}
	case 12, 13, 14:
		u.release(u.rng.IntN(len(u.calls) + 1))
	default:
		u.arrive(i)
	}
}

func (u *underRun) arrive(i int) {
	at := oracle.Instant(int64(u.now()))
	cost := u.cost()
	c := &underCall{key: i, oracleCall: oracleCall{place: u.places && u.rng.IntN(2) == 0}}
	ask := oracle.Ask{Cost: int64(cost), Place: c.place}
	ctx, cancel := context.WithCancel(u.t.Context())
	if u.rng.IntN(4) == 0 {
		deadline := u.soon()
		ctx, cancel = context.WithDeadline(u.t.Context(), u.r.start.Add(deadline))
		ask.Deadline = oracle.Instant(int64(deadline))
	}
	if u.m.Classes > 0 {
		ask.Class = u.rng.IntN(u.m.Classes)
		ctx = shaper.WithClass(ctx, ask.Class)
	}
	// A key whose calls are over need not know when it was held last, so none states to have come
	// before that.
	if opened := u.opened[i]; opened < u.now() && u.rng.IntN(8) == 0 {
		arrived := opened + 1 + time.Duration(u.rng.Int64N(int64(u.now()-opened)))
		ctx, ask.Arrived = shaper.WithArrival(ctx, u.r.start.Add(arrived)), oracle.Instant(int64(arrived))
	}
	c.model = u.m.Arrive(at, u.m.Keys[i], ask)
	c.cancel = cancel
	u.t.Cleanup(cancel)
	wait := u.pacerOf(i).WaitN
	if c.place {
		wait = u.pacerOf(i).Acquire
	}
	c.real = u.r.submit(func() error { return wait(ctx, cost) })
	u.calls = append(u.calls, c)
}

// release gives a place back, if there is one among the calls from the i-th on.
func (u *underRun) release(i int) bool {
	u.m.Advance(oracle.Instant(int64(u.now())))
	for ; i < len(u.calls); i++ {
		c := u.calls[i]
		if c.place && !c.released && c.model.Outcome == oracle.Left && c.real.ended && c.real.err == nil {
			c.released = true
			u.m.Release(oracle.Instant(int64(u.now())), u.m.Keys[c.key])
			u.pacerOf(c.key).Release()
			synctest.Wait()
			return true
		}
	}
	return false
}

// end lets every call that waits come to its end.
func (u *underRun) end() {
	for i, k := range u.m.Keys {
		u.m.Resume(oracle.Instant(int64(u.now())), k)
		u.pacerOf(i).Resume()
		synctest.Wait()
	}
	for more := true; more && !u.m.Ambiguous; {
		u.r.until(u.now() + 1000*time.Hour)
		more = u.release(0)
	}
}

// keyOf is a key of a Group under an account.
type keyOf struct {
	t   *testing.T
	g   *shaper.Group[int]
	key int
}

func (k keyOf) WaitN(ctx context.Context, cost int) error   { return k.g.WaitN(ctx, k.key, cost) }
func (k keyOf) Acquire(ctx context.Context, cost int) error { return k.g.Acquire(ctx, k.key, cost) }
func (k keyOf) Release()                                    { k.g.Release(k.key) }
func (k keyOf) AllowN(cost int) bool                        { return k.g.AllowN(k.key, cost) }
func (k keyOf) Delay() time.Duration                        { return k.g.Delay(k.key) }
func (k keyOf) SetRate(r scheduler.Rate) error              { return k.g.SetRate(k.key, r) }
func (k keyOf) Scale(num, den int64) error                  { return k.g.Scale(k.key, num, den) }
func (k keyOf) Pause()                                      { assert.NoError(k.t, k.g.Pause(k.key)) }
func (k keyOf) Resume()                                     { k.g.Resume(k.key) }
func (k keyOf) HoldUntil(t time.Time)                       { assert.NoError(k.t, k.g.HoldUntil(k.key, t)) }
func (k keyOf) Charge(cost int)                             { assert.NoError(k.t, k.g.Charge(k.key, cost)) }
