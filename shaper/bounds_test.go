package shaper_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/trial"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// refused returns the error of a call that has ended, and nil for one that waits or has left.
func (r *recorder) refused(c *submitted) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return c.err
}

// A crowd submits n calls of a cost and returns how many were not refused.
func crowd(t *testing.T, wait func(ctx context.Context, cost int) error, n, cost int) (admitted int) {
	t.Helper()
	r := newRecorder()
	for range n {
		c := r.submit(func() error { return wait(t.Context(), cost) })
		err := r.refused(c)
		if err == nil {
			admitted++
			continue
		}
		assert.ErrorIs(t, err, shaper.ErrQueueFull)
	}
	return admitted
}

// bounded are a Shaper and a key of a Group.
func bounded(t *testing.T, r scheduler.Rate, opts ...shaper.Option) map[string]pacer {
	return map[string]pacer{"Shaper": newShaper(t, r, opts...), "key": newKey(t, r, opts...)}
}

// A line holds as many calls as it may, whatever they cost: a call of 500 units that has
// left counts as one more, for as long as it is not paid off.
func TestLineCountsCallsNotUnits(t *testing.T) {
	for _, tt := range []struct{ capacity, want int }{{3, 3}, {4, 4}, {1024, 1024}} {
		synctest.Test(t, func(t *testing.T) {
			for name, p := range bounded(t, scheduler.PerMinute(6000), shaper.WithQueue(tt.capacity)) {
				assert.Equal(t, tt.want, crowd(t, p.WaitN, tt.capacity+5, 500), name)
				pass(time.Hour * 24)
			}
			// Without anything owed, behind a pause, it holds just so many calls.
			for name, p := range bounded(t, scheduler.PerMinute(6000), shaper.WithQueue(tt.capacity)) {
				p.Pause()
				assert.Equal(t, tt.capacity, crowd(t, p.WaitN, tt.capacity+5, 500), name)
				p.Resume()
				pass(time.Hour * 24)
			}
		})
	}
}

// The third call of 500 units waits, at 6,000 a minute and with a line of the default size.
func TestThirdCallOfLargeCostWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, p := range bounded(t, scheduler.PerMinute(6000)) {
			assert.Equal(t, 4, crowd(t, p.WaitN, 4, 500), name)
			pass(time.Minute)
		}
	})
}

// A crowd of single units on an idle line: B leave at once. What they owe counts beyond the
// burst only, so c-1 more wait if nothing was saved up for a further one, and B+c-1 are admitted.
func TestColdBurstAdmitsWhatTheLineHolds(t *testing.T) {
	for _, capacity := range []int{1, 2, 5, 100} {
		for _, burst := range []int{1, 2, 5} {
			synctest.Test(t, func(t *testing.T) {
				for name, p := range bounded(t, scheduler.PerSecond(3), shaper.WithQueue(capacity), shaper.WithBurst(burst)) {
					assert.Equal(t, burst+capacity-1, crowd(t, p.WaitN, burst+capacity+5, 1), "%s: queue %d burst %d", name, capacity, burst)
					pass(time.Hour)
				}
			})
		}
	}
}

// What was charged is owed, and counts as calls of the cost of the last charge.
func TestChargesFillTheLine(t *testing.T) {
	for _, tt := range []struct{ cost, charges, want int }{
		{1, 1, 4}, {1, 3, 2}, {1, 5, 0}, {1, 50, 0}, // of 5, one waits for each that is not charged
		{500, 1, 4}, {500, 3, 2}, {500, 5, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			for name, p := range bounded(t, scheduler.PerSecond(10), shaper.WithQueue(5)) {
				for range tt.charges {
					p.Charge(tt.cost)
				}
				assert.Equal(t, tt.want, crowd(t, p.WaitN, 10, 1), "%s: %+v", name, tt)
				pass(time.Hour)
			}
		})
	}
}

// A schedule that is no rate tells no debt: the line holds c calls, beside those that leave.
func TestLineOfAWindowHoldsItsCalls(t *testing.T) {
	for name, limit := range map[string]scheduler.Scheduler{
		"FixedWindow": must(scheduler.NewFixedWindow(3, time.Minute)),
		"SlidingLog":  must(scheduler.NewSlidingLog(3, time.Minute)),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := shaper.NewFrom(limit, shaper.WithQueue(4))
				require.NoError(t, err)
				assert.Equal(t, 3+4, crowd(t, s.WaitN, 20, 1))
				pass(time.Hour)
				conserved(t, s)
			})
		})
	}
	t.Run("beside a rate", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newShaper(t, scheduler.PerSecond(10), shaper.WithQueue(4), shaper.WithLimits(must(scheduler.NewSlidingLog(3, time.Minute))))
			assert.Equal(t, 1+4, crowd(t, s.WaitN, 20, 1))
			pass(time.Hour)
			conserved(t, s)
		})
	})
}

// WithMaxBacklog bounds the wait for units: just d passes, and a nanosecond more is a full
// queue.
func TestMaxBacklogIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			d           time.Duration
			idle, owing int // calls that pass: at once and 100 ms apart; from 1 ns on and 100 ms apart
		}{{0, 1, 0}, {1, 1, 1}, {300*ms - 1, 3, 3}, {300 * ms, 4, 3}, {300*ms + 1, 4, 4}} {
			for name, p := range bounded(t, scheduler.PerSecond(10), shaper.WithMaxBacklog(tt.d)) {
				assert.Equal(t, tt.idle, crowd(t, p.WaitN, 10, 1), "%s: %v", name, tt.d)
				pass(time.Hour)
				p.Charge(1)
				pass(100*ms - 1)
				assert.Equal(t, tt.owing, crowd(t, p.WaitN, 10, 1), "%s: %v", name, tt.d)
				pass(time.Hour)
			}
		}
	})
}

// A hold or a pause does not mean that too much was asked for.
func TestGatesAreNoBacklog(t *testing.T) {
	for name, shut := range map[string]func(p pacer){
		"hold":  func(p pacer) { p.HoldUntil(time.Now().Add(time.Hour)) },
		"pause": func(p pacer) { p.Pause() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for kind, p := range bounded(t, scheduler.PerSecond(10), shaper.WithMaxBacklog(300*ms)) {
					shut(p)
					assert.Equal(t, 4, crowd(t, p.WaitN, 10, 1), kind) // the first would leave at once
					p.Resume()
					pass(time.Hour)
				}
			})
		})
	}
}

func TestBoundsAreChecked(t *testing.T) {
	for want, opt := range map[string]shaper.Option{
		"queue 0":                          shaper.WithQueue(0),
		"queue -1":                         shaper.WithQueue(-1),
		"maximum backlog -1ns":             shaper.WithMaxBacklog(-1),
		"maximum delay -1ns":               shaper.WithMaxDelay(-1),
		"0 in flight":                      shaper.WithMaxInFlight(0),
		"-7 in flight":                     shaper.WithMaxInFlight(-7),
		"maximum backlog -2562047h47m16.8": shaper.WithMaxBacklog(math.MinInt64),
	} {
		_, err := shaper.New(scheduler.PerSecond(1), opt)
		assert.ErrorContains(t, err, "shaper: "+want)
		_, err = shaper.NewGroup[int](scheduler.PerSecond(1), opt)
		assert.ErrorContains(t, err, "shaper: "+want)
	}
	_, err := shaper.NewGroup[int](scheduler.PerSecond(1), shaper.WithMaxKeys(0))
	assert.ErrorContains(t, err, "shaper: maximum of 0 keys")
}

// The largest bounds that can be told bound nothing and refuse nothing.
func TestLargestBoundsBoundNothing(t *testing.T) {
	for _, rate := range []scheduler.Rate{scheduler.PerSecond(1000), scheduler.PerDay(1), scheduler.Per(1<<20+7, time.Hour), scheduler.Unlimited} {
		for _, cost := range []int{1, 7, 1 << 20} {
			synctest.Test(t, func(t *testing.T) {
				opts := []shaper.Option{shaper.WithQueue(math.MaxInt), shaper.WithMaxInFlight(math.MaxInt),
					shaper.WithMaxDelay(math.MaxInt64), shaper.WithMaxBacklog(math.MaxInt64)}
				s := newShaper(t, rate, opts...)
				key := newKey(t, rate, append(opts, shaper.WithMaxKeys(math.MaxInt))...)
				limited := newShaper(t, rate, append(opts, shaper.WithLimits(must(scheduler.NewGCRA(rate, 3))))...)
				for name, p := range map[string]pacer{"Shaper": s, "key": key, "limits": limited} {
					if name == "limits" && rate.For(int64(20*cost)) == math.MaxInt64 {
						continue // centuries, of which limits do not tell whether they ever end
					}
					assert.Equal(t, 20, crowd(t, p.Acquire, 20, cost), "%s: %v cost %d", name, rate, cost)
				}
				for i := range 100 { // keys
					assert.True(t, key.g.Allow(string(rune('Ā'+i))))
				}
				assert.NoError(t, s.Close())
				assert.NoError(t, key.g.Close())
				assert.NoError(t, limited.Close())
			})
		}
	}
}

// A room times a cost that wraps around to something small fills no line.
func TestHugeRoomDoesNotWrapAround(t *testing.T) {
	huge := int64(1)<<61 + 1 // times 8 it is 2^64 + 8
	if int64(int(huge)) != huge {
		t.Skip("an int is shorter")
	}
	synctest.Test(t, func(t *testing.T) {
		for name, p := range bounded(t, scheduler.PerSecond(1000), shaper.WithQueue(int(huge))) {
			assert.Equal(t, 5, crowd(t, p.WaitN, 5, 8), name)
			pass(time.Minute)
		}
	})
}

// Whatever has left and at whatever cost, a line refuses a call as full just when its calls
// and what is owed beyond the burst, counted as calls of the latest cost, are c or more.
func TestFullIsToldExactly(t *testing.T) {
	trial.Run(t, 300, func(t *testing.T, rng *rand.Rand) {
		synctest.Test(t, func(t *testing.T) {
			burst, capacity := 1+rng.IntN(5), 1+rng.IntN(6)
			const interval = 10 * ms
			for name, p := range bounded(t, scheduler.Every(interval), shaper.WithBurst(burst), shaper.WithQueue(capacity)) {
				r := newRecorder()
				tat, latest := time.Duration(0), 1
				waiting := 0
				for range 30 {
					time.Sleep(time.Duration(rng.IntN(3)) * interval / 2)
					if waiting > 0 { // what waits is looked at in TestOracle
						pass(time.Hour)
						waiting = 0
						tat, latest = 0, 1
						continue
					}
					now := time.Since(r.start)
					cost := 1 + rng.IntN(3)*rng.IntN(12)
					due := tat - time.Duration(burst-min(cost, burst))*interval
					owed := tat - now - time.Duration(burst-min(latest, burst))*interval
					before := len(r.left())
					err := r.refused(r.submit(func() error { return p.WaitN(t.Context(), cost) }))
					switch {
					case due <= now:
						require.Len(t, r.left(), before+1, "%s: cost %d due at %v, at %v: %v", name, cost, due, now, err)
						tat, latest = max(tat, now)+time.Duration(cost)*interval, cost
					case owed >= time.Duration(capacity*latest)*interval:
						require.ErrorIs(t, err, shaper.ErrQueueFull, "%s: %v owed at latest cost %d, room for %d", name, owed, latest, capacity)
					default:
						require.NoError(t, err, "%s: %v owed at latest cost %d, room for %d", name, owed, latest, capacity)
						require.Len(t, r.left(), before)
						waiting++
					}
				}
				pass(time.Hour)
			}
		})
	})
}
