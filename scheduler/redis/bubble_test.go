package redis_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/redis"
	"github.com/sluice-go/sluice/shaper"
)

// A process is one of several, in a bubble.
type process struct {
	*shaper.Shaper
	schedule *redis.Schedule
}

func newProcess(t *testing.T, f *scripted, r scheduler.Rate, burst int64, p redis.Policy, opts ...redis.Option) process {
	t.Helper()
	sched, err := f.on("bubble", r, burst, p, opts...)
	require.NoError(t, err)
	s, err := redis.NewShaper(sched)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		time.Sleep(time.Second) // what is handed back is on its way
	})
	return process{s, sched}
}

// A diary is when calls left, since it was made.
type diary struct {
	began time.Time
	mu    sync.Mutex
	left  []time.Duration
	errs  []error
}

func newDiary() *diary { return &diary{began: time.Now()} }

// note writes down that a call has left.
func (l *diary) note() {
	at := time.Since(l.began)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = append(l.left, at)
}

func (l *diary) wait(ctx context.Context, p process, calls, cost int) {
	for range calls {
		go func() {
			err := p.WaitN(ctx, cost)
			at := time.Since(l.began)
			l.mu.Lock()
			defer l.mu.Unlock()
			if err != nil {
				l.errs = append(l.errs, err)
				return
			}
			l.left = append(l.left, at)
		}()
		synctest.Wait()
	}
}

// times returns when calls left, in order.
func (l *diary) times() []time.Time {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	at := make([]time.Time, len(l.left))
	for i, d := range l.left {
		at[i] = l.began.Add(d)
	}
	sortTimes(at)
	return at
}

func (l *diary) take() []time.Duration {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	left := l.left
	l.left = nil
	return left
}

// A call leaves one round trip after it came, and the calls behind it a T apart: the way to
// the store costs no slot.
func TestLeavesAtItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newScripted(t, 2*ms)
		p := newProcess(t, f, scheduler.PerSecond(100), 1, redis.FailLocal(4))
		l := newDiary()
		l.wait(t.Context(), p, 40, 1)
		time.Sleep(time.Second)
		left := l.take()
		require.Len(t, left, 40)
		assert.Equal(t, 2*ms, left[0])
		for i := 1; i < len(left); i++ {
			// Runs differ by what the reply was under way.
			assert.InDelta(t, float64(10*ms), float64(left[i]-left[i-1]), float64(2*ms), "%d", i)
		}
		assert.InDelta(t, float64(391*ms), float64(left[39]), float64(2*ms))
		assert.LessOrEqual(t, p.schedule.Stats().Steps, int64(20))
		assert.EqualValues(t, 40, p.schedule.Stats().Used)
	})
}

// A burst leaves at once, and no more than that.
func TestBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, newScripted(t, 0), scheduler.PerSecond(10), 5, redis.FailLocal(4))
		l := newDiary()
		l.wait(t.Context(), p, 8, 1)
		time.Sleep(time.Second)
		left := l.take()
		require.Len(t, left, 8)
		assert.Less(t, left[4], 60*ms)
		for i, at := range left[5:] {
			assert.InDelta(t, float64(time.Duration(i+1)*100*ms), float64(at), float64(60*ms))
		}
	})
}

// A call of more than a horizon, and of more than the burst, gets its slots.
func TestCostAboveHorizon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, newScripted(t, ms), scheduler.PerSecond(100), 1, redis.FailLocal(4))
		l := newDiary()
		l.wait(t.Context(), p, 1, 20)
		l.wait(t.Context(), p, 1, 1)
		time.Sleep(time.Second)
		assert.Equal(t, []time.Duration{191 * ms, 201 * ms}, l.take())
	})
}

// A call that gives up hands its slot to the others, in other processes too.
func TestCancelledSlotsComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newScripted(t, 2*ms)
		r := scheduler.PerMinute(1)
		first, second := newProcess(t, f, r, 1, redis.FailLocal(2)), newProcess(t, f, r, 1, redis.FailLocal(2))
		l := newDiary()
		l.wait(t.Context(), first, 1, 1)
		time.Sleep(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		l.wait(ctx, first, 1, 1)
		time.Sleep(time.Second)
		cancel()
		time.Sleep(2 * time.Second)
		assert.EqualValues(t, 1, first.schedule.Stats().Returned)
		l.wait(t.Context(), second, 1, 1)
		time.Sleep(time.Hour)
		left := l.take()
		require.Len(t, left, 2)
		assert.InDelta(t, float64(time.Minute), float64(left[1]), float64(5*ms), "and not the slot after it")
	})
}

// A slot that was missed is let go, and no call catches up.
func TestMissedSlotsAreLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newScripted(t, 0)
		sched, err := f.on("missed", scheduler.PerSecond(100), 1, redis.FailLocal(4))
		require.NoError(t, err)
		defer func() { require.NoError(t, sched.Close()); time.Sleep(time.Second) }()
		now := time.Now()
		sched.Demand(now, 5, 1, time.Time{})
		synctest.Wait()
		require.EqualValues(t, 5, sched.Stats().InHand)
		time.Sleep(25 * ms) // slots at 0, 10, 20, 30, 40
		at := sched.Next(time.Now(), 0, 1)
		assert.Equal(t, time.Now(), at, "5 ms late are tolerated")
		assert.EqualValues(t, 0, sched.Stats().Missed, "to ask changes nothing")
		sched.Demand(time.Now(), 3, 1, time.Time{})
		assert.EqualValues(t, 2, sched.Stats().Missed)
		sched.Commit(at, at, 1)
		assert.Equal(t, 30*ms, sched.Next(time.Now(), 0, 1).Sub(now))
	})
}

// A process that was late loses the time and not its turn, if no other came after it.
func TestLateTurnIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newScripted(t, 0)
		sched, err := f.on("late", scheduler.PerMinute(1), 1, redis.FailLocal(2), redis.WithHorizon(time.Hour), redis.WithTolerance(5*ms))
		require.NoError(t, err)
		// A line asks for its head, and again when it is told to.
		ask := func() time.Time {
			sched.Demand(time.Now(), 1, 1, time.Time{})
			return sched.Next(time.Now(), 0, 1)
		}
		sched.Notify(func() { ask() })
		began := time.Now()
		ask()
		synctest.Wait()
		sched.Commit(ask(), time.Now(), 1)
		ask()
		synctest.Wait()
		require.Equal(t, time.Minute, ask().Sub(began))
		time.Sleep(time.Minute + 20*ms)
		ask()
		synctest.Wait()
		assert.Equal(t, time.Now(), ask())
		sched.Commit(ask(), time.Now(), 1)
		ask()
		synctest.Wait()
		assert.Equal(t, 2*time.Minute+20*ms, ask().Sub(began))
		require.NoError(t, sched.Close())
		time.Sleep(time.Second)
	})
}

// What left without asking is charged.
func TestChargeReachesTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newScripted(t, 0)
		p := newProcess(t, f, scheduler.PerSecond(10), 1, redis.FailLocal(4))
		p.Charge(5)
		synctest.Wait()
		l := newDiary()
		l.wait(t.Context(), p, 1, 1)
		time.Sleep(2 * time.Second)
		assert.Equal(t, []time.Duration{500 * ms}, l.take())
	})
}

// An idle process has no timer: a bubble in which nothing can happen any more would
// otherwise go on for ever. It also asks nothing.
func TestIdleIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newScripted(t, ms)
		p := newProcess(t, f, scheduler.PerSecond(100), 1, redis.FailLocal(4))
		l := newDiary()
		l.wait(t.Context(), p, 20, 1)
		time.Sleep(2 * time.Second)
		steps := p.schedule.Stats().Steps
		time.Sleep(24 * time.Hour)
		assert.Equal(t, steps, p.schedule.Stats().Steps)
		assert.EqualValues(t, 0, p.schedule.Stats().InHand)
		assert.False(t, p.schedule.Busy())
	})
}

// A hanging store costs one call its timeout, and one that fails nothing. Then it is looked
// for, and found, without a burst.
func TestBreaker(t *testing.T) {
	for _, fails := range []error{nil, errors.New("gone")} {
		synctest.Test(t, func(t *testing.T) {
			f := newScripted(t, 2*ms)
			f.set(fails == nil, fails)
			noticed := 100 * ms
			if fails != nil {
				noticed = ms
			}
			var states []bool
			r := scheduler.PerSecond(100)
			p := newProcess(t, f, r, 1, redis.FailLocal(4), redis.WithOnChange(func(s redis.State) { states = append(states, s.Up) }))
			l := newDiary()
			l.wait(t.Context(), p, 200, 1)
			time.Sleep(1000 * ms)
			left := l.take()
			require.NotEmpty(t, left)
			assert.GreaterOrEqual(t, left[0], noticed)
			assert.LessOrEqual(t, left[0], noticed+40*ms)
			// The share may have begun while the store was still being asked: the first call is
			// late by that, which the tolerance absorbs.
			require.Greater(t, len(left), 2)
			assert.LessOrEqual(t, left[1]-left[0], 40*ms)
			assert.GreaterOrEqual(t, left[1]-left[0], 40*ms-min(noticed, 5*ms))
			for i := 2; i < len(left); i++ {
				assert.Equal(t, 40*ms, left[i]-left[i-1])
			}
			assert.Equal(t, []bool{false}, states)
			f.set(false, nil)
			time.Sleep(800 * ms)
			synctest.Wait()
			assert.Equal(t, []bool{false, true}, states)
			l.take()
			time.Sleep(time.Second)
			left = l.take()
			assert.InDelta(t, 100, len(left), 1)
			for i := 1; i < len(left); i++ {
				assert.InDelta(t, float64(10*ms), float64(left[i]-left[i-1]), float64(2*ms))
			}
		})
	}
}

// One call waits for the timeout of a store that hangs, and all others are refused at once.
func TestOneCallWaitsForTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, newScripted(t, 0).hanging(), scheduler.PerSecond(100), 1, redis.FailClosed())
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var unavailable *redis.UnavailableError
		for range 100 {
			require.ErrorAs(t, p.Wait(ctx), &unavailable)
			assert.Equal(t, 100*ms, time.Since(began))
		}
	})
}

func TestFailClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newScripted(t, 2*ms)
		p := newProcess(t, f, scheduler.PerSecond(1), 1, redis.FailClosed())
		l := newDiary()
		l.wait(t.Context(), p, 3, 1)
		time.Sleep(100 * ms)
		require.Len(t, l.take(), 1)
		f.set(false, errors.New("READONLY You can't write against a read only replica."))
		time.Sleep(3 * time.Second)
		// Slots in hand are good; then the calls that wait are told.
		l.take()
		var unavailable *redis.UnavailableError
		require.NotEmpty(t, l.errs)
		for _, err := range l.errs {
			require.ErrorAs(t, err, &unavailable)
			assert.Equal(t, "fake", unavailable.Store)
		}
		require.ErrorAs(t, p.Do(t.Context(), func(context.Context) error { return nil }), &unavailable)
		f.set(false, nil)
		// Calls that are refused look for the store.
		for range 5 {
			time.Sleep(300 * ms)
			l.wait(t.Context(), p, 1, 1)
		}
		time.Sleep(10 * time.Second)
		assert.NotEmpty(t, l.take())
	})
}

func TestFailOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, newScripted(t, 0).failing(errors.New("gone")), scheduler.PerHour(1), 1, redis.FailOpen())
		l := newDiary()
		l.wait(t.Context(), p, 10, 1)
		time.Sleep(100 * ms)
		assert.Len(t, l.take(), 10)
		assert.EqualValues(t, 10, p.schedule.Stats().Alone)
	})
}

// One process is told to wait, and all do.
func TestSharedHold(t *testing.T) {
	for _, slow := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newScripted(t, 2*ms)
			r := scheduler.PerSecond(100)
			if slow {
				r = scheduler.PerSecond(1)
			}
			one, two := newProcess(t, f, r, 1, redis.FailLocal(2), redis.WithSharedHold()), newProcess(t, f, r, 1, redis.FailLocal(2), redis.WithSharedHold())
			l := newDiary()
			l.wait(t.Context(), two, 200, 1)
			time.Sleep(1500 * ms)
			one.HoldUntil(time.Now().Add(5 * time.Second))
			synctest.Wait()
			time.Sleep(60 * ms) // a horizon, and the way there
			l.take()
			time.Sleep(4930 * ms)
			assert.Empty(t, l.take(), "slow: %v", slow)
			time.Sleep(2 * time.Second)
			left := l.take()
			require.NotEmpty(t, left)
			for i := 1; i < len(left); i++ {
				assert.Greater(t, left[i]-left[i-1], r.Interval()-3*ms)
			}
			require.NoError(t, two.Close())
		})
	}
}
