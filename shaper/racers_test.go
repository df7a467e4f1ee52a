package shaper_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/trial"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// At one instant racers take all that the bucket holds and not one unit more, whatever else
// takes the lock meanwhile.
func TestFrozenBucketIsNeverOverdrawn(t *testing.T) {
	trial.Run(t, 80, func(t *testing.T, rng *rand.Rand) {
		synctest.Test(t, func(t *testing.T) {
			const burst = 20_000
			s := newShaper(t, scheduler.PerHour(1), shaper.WithBurst(burst))
			time.Sleep(time.Duration(rng.IntN(60)) * 7 * time.Hour)
			charges := rng.IntN(2) == 0
			var left, charged atomic.Int64
			var wg sync.WaitGroup
			for range 4 {
				rng := rand.New(rand.NewPCG(rng.Uint64(), 0))
				wg.Go(func() {
					for range 8000 {
						take := s.AllowN
						if rng.IntN(3) == 0 {
							take = s.LeaveNow
						}
						if n := 1 + rng.IntN(2)*rng.IntN(3); take(n) {
							left.Add(int64(n))
						}
					}
				})
			}
			wg.Go(func() {
				for i := range 200 {
					disturb(t, s, i)
					if charges && i%6 == 0 {
						s.Charge(1)
						charged.Add(1)
					}
				}
			})
			wg.Wait()
			assert.LessOrEqual(t, left.Load(), int64(burst))
			if !charges {
				assert.EqualValues(t, burst, left.Load())
			}
			gone := left.Load() + charged.Load()
			assert.Equal(t, max(0, time.Duration(gone-burst+1)*time.Hour), s.Delay())
		})
	})
}

// disturb does something that takes the lock and changes nothing.
func disturb(t *testing.T, s *shaper.Shaper, i int) {
	switch i % 5 {
	case 0:
		assert.NoError(t, s.SetRate(scheduler.PerHour(1)))
	case 1:
		s.Stats()
	case 2:
		s.Delay()
	case 3:
		s.HoldUntil(time.Now())
	case 4:
		assert.NoError(t, s.Scale(1, 1))
	}
}

// Rates alternate at one instant. What is owed is owed in units, so no caller gains by it.
func TestFrozenBucketAcrossRates(t *testing.T) {
	trial.Run(t, 80, func(t *testing.T, rng *rand.Rand) {
		synctest.Test(t, func(t *testing.T) {
			const burst = 20_000
			s := newShaper(t, scheduler.PerHour(3), shaper.WithBurst(burst))
			time.Sleep(time.Duration(rng.IntN(60)) * time.Hour)
			var left atomic.Int64
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					for range 8000 {
						if s.Allow() {
							left.Add(1)
						}
					}
				})
			}
			wg.Go(func() {
				for i := range 200 {
					assert.NoError(t, s.SetRate(scheduler.PerHour([]int64{3, 7, 60, 1}[i%4])))
				}
			})
			wg.Wait()
			assert.EqualValues(t, burst, left.Load())
		})
	})
}

// Once Pause, HoldUntil or Close has returned no call leaves until that is lifted.
func TestShutIsShutForRacers(t *testing.T) {
	for name, gate := range map[string]struct{ shut, open func(*shaper.Shaper) }{
		"pause": {(*shaper.Shaper).Pause, (*shaper.Shaper).Resume},
		"hold":  {func(s *shaper.Shaper) { s.HoldUntil(time.Now().Add(time.Hour)) }, (*shaper.Shaper).Resume},
		"close": {func(s *shaper.Shaper) { s.Close() }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for range 12 {
				s := newShaper(t, scheduler.Unlimited)
				var phase, through atomic.Int64 // a phase that is odd: shut
				stop := make(chan struct{})
				var wg sync.WaitGroup
				for _, leave := range []func() bool{s.Allow, func() bool { return s.LeaveNow(1) }, func() bool { return waitDead(s) }} {
					wg.Go(func() {
						for open(stop) {
							before := phase.Load()
							if leave() && before%2 == 1 && phase.Load() == before {
								through.Add(1)
							}
							runtime.Gosched()
						}
					})
				}
				for range 20 {
					gate.shut(s)
					phase.Add(1)
					runtime.Gosched()
					if gate.open == nil {
						for range 100 {
							runtime.Gosched()
						}
						break
					}
					phase.Add(1)
					gate.open(s)
					runtime.Gosched()
				}
				close(stop)
				wg.Wait()
				require.Zero(t, through.Load(), "left through a shut gate")
			}
		})
	}
}

func open(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return false
	default:
		return true
	}
}

// waitDead reports whether a call has left that does not wait.
func waitDead(s *shaper.Shaper) bool {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return s.Wait(ctx) == nil || s.AllowN(1)
}

// Racers over more keys than there is room for, in steps of exact time, with keys that are
// forgotten and made again, held, paused, acquired, and calls that give up: each key keeps
// its shape to the nanosecond, each call has one outcome, and in the end nothing is left.
func TestGroupRacersKeepEachShape(t *testing.T) {
	trial.Run(t, 60, func(t *testing.T, rng *rand.Rand) {
		synctest.Test(t, func(t *testing.T) { newGroupRace(t, rng).run() })
	})
}

const (
	raceKeys     = 12
	raceInterval = 10 * ms
)

type groupRace struct {
	t     *testing.T
	rng   *rand.Rand
	g     *shaper.Group[int]
	burst int
	start time.Time
	wg    sync.WaitGroup
	calls atomic.Int64
	ended atomic.Int64

	mu   sync.Mutex
	left [raceKeys][]time.Duration
}

func newGroupRace(t *testing.T, rng *rand.Rand) *groupRace {
	r := &groupRace{t: t, rng: rng, burst: 1 + rng.IntN(4), start: time.Now()}
	r.g = newGroup[int](t, scheduler.Per(1, raceInterval), shaper.WithBurst(r.burst), shaper.WithTolerance(0),
		shaper.WithMaxKeys(4+rng.IntN(10)), shaper.WithQueue(50))
	return r
}

func (r *groupRace) run() {
	for range 8 {
		rng := rand.New(rand.NewPCG(r.rng.Uint64(), 0))
		r.wg.Go(func() {
			for range 60 {
				if rng.IntN(3) == 0 {
					time.Sleep([]time.Duration{0, 1, raceInterval / 3, raceInterval, raceInterval - 1, 3 * raceInterval, 20 * raceInterval}[rng.IntN(7)])
				}
				r.step(rng, rng.IntN(raceKeys))
			}
		})
	}
	r.wg.Wait()
	assert.Equal(r.t, r.calls.Load(), r.ended.Load())
	sum := 0
	for key, left := range r.left {
		sum += len(left)
		for i, at := range left {
			for k := i + r.burst; k < len(left); k++ {
				require.GreaterOrEqual(r.t, left[k]-at, time.Duration(k-i+1-r.burst)*raceInterval,
					"key %d: %d units, burst %d", key, k-i+1, r.burst)
			}
		}
	}
	conservedGroup(r.t, r.g)
	st := r.g.Stats()
	assert.Equal(r.t, []int64{r.calls.Load(), int64(sum), 0}, []int64{st.Submitted, st.Left, st.Waiting})
	for key := range raceKeys {
		r.g.Resume(key)
		_ = r.g.SetRate(key, scheduler.Per(1, raceInterval)) // an error is about a key for which there is no room
	}
	time.Sleep(time.Hour)
	assert.Zero(r.t, r.g.Len(), "keys that are remembered")
}

// step does one random thing with a key. Errors of changes are about keys for which there is
// no room.
func (r *groupRace) step(rng *rand.Rand, key int) {
	upTo := func(n int) time.Duration { return time.Duration(rng.Int64N(int64(n) * int64(raceInterval))) }
	switch rng.IntN(14) {
	case 0, 1, 2:
		r.call(key, func() bool { return r.g.Allow(key) })
	case 3:
		if r.g.LeaveNow(key, 1) {
			r.call(key, func() bool { return true })
		}
	case 4:
		_ = r.g.HoldUntil(key, time.Now().Add(upTo(5)))
	case 5:
		_ = r.g.Pause(key)
		r.g.Resume(key)
	case 6:
		r.g.Resume(key)
	case 7:
		r.g.Len()
	case 8:
		r.g.Delay(key)
	case 9:
		patience := upTo(4)
		r.call(key, func() bool { return r.acquire(key, patience) })
	case 10:
		_ = r.g.SetRate(key, scheduler.Per(1, raceInterval+time.Duration(rng.IntN(2))))
	default:
		patience := time.Hour
		if rng.IntN(2) == 0 {
			patience = time.Duration(rng.IntN(3)) * raceInterval / 2
		}
		r.wg.Go(func() { r.call(key, func() bool { return r.wait(key, patience) }) })
	}
}

// call counts a call, and notes when it left.
func (r *groupRace) call(key int, leave func() bool) {
	r.calls.Add(1)
	if leave() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.left[key] = append(r.left[key], time.Since(r.start))
	}
	r.ended.Add(1)
}

func (r *groupRace) acquire(key int, patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if r.g.Acquire(ctx, key, 1) != nil {
		return false
	}
	runtime.Gosched()
	r.g.Release(key)
	return true
}

// wait has a call give up after a while. It has no deadline, so it is not refused for one.
func (r *groupRace) wait(key int, patience time.Duration) bool {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer time.AfterFunc(patience, cancel).Stop()
	err := r.g.Wait(ctx, key)
	known := []error{nil, context.Canceled, shaper.ErrTooManyKeys, shaper.ErrQueueFull}
	assert.True(r.t, slices.ContainsFunc(known, func(e error) bool { return errors.Is(err, e) }), "%v", err)
	return err == nil
}

// On the real clock, while callers give up, rates change and keys share their calls and
// timers, no caller sleeps for ever and no key gets more than its rate.
func TestNoWakeUpIsLostInAGroup(t *testing.T) {
	for name, opts := range map[string][]shaper.Option{
		"timers":  nil,
		"precise": {shaper.WithPreciseTiming()},
		"grain":   {shaper.WithPreciseTiming(), shaper.WithGrain(200 * us)},
	} {
		t.Run(name, func(t *testing.T) {
			const perSecond, keys, callers = 2000, 20, 48
			g := newGroup[int](t, scheduler.PerSecond(perSecond),
				append(opts, shaper.WithQueue(4000), shaper.WithMaxKeys(18), shaper.WithMaxInFlight(3))...)
			began := time.Now()
			var left [keys]atomic.Int64
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for time.Since(began) < 150*ms {
						key := rand.IntN(keys)
						if useKey(g, key, perSecond) {
							left[key].Add(1)
						}
					}
				})
			}
			wg.Wait() // if a caller sleeps for ever, the test times out and shows where
			most := 1 + int64((time.Since(began)+5*ms)/(time.Second/perSecond))
			sum := int64(0)
			for key := range left {
				n := left[key].Load()
				sum += n
				assert.LessOrEqual(t, n, most, "key %d", key)
			}
			conservedGroup(t, g)
			st := g.Stats()
			assert.Equal(t, []int64{sum, 0}, []int64{st.Left, st.Waiting})
			assert.NotZero(t, sum)
		})
	}
}

// useKey does one random thing with a key, and reports whether a call has left.
func useKey(g *shaper.Group[int], key, perSecond int) bool {
	switch rand.IntN(12) {
	case 0:
		_ = g.SetRate(key, scheduler.PerHour(10))
		time.Sleep(time.Duration(rand.IntN(int(ms))))
		_ = g.SetRate(key, scheduler.PerSecond(int64(perSecond)))
		return false
	case 1:
		_ = g.HoldUntil(key, time.Now().Add(time.Duration(rand.IntN(int(ms)))))
		return false
	case 2:
		_ = g.Pause(key)
		time.Sleep(time.Duration(rand.IntN(int(ms / 2))))
		g.Resume(key)
		return false
	case 3:
		if g.Acquire(context.Background(), key, 1) != nil {
			return false
		}
		g.Release(key)
		return true
	}
	ctx, cancel := context.Background(), func() {}
	if rand.IntN(3) > 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(rand.IntN(int(3*ms))))
	}
	defer cancel()
	return g.Wait(ctx, key) == nil
}
