package shaper_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/trial"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// Sources: kubernetes-sigs/controller-runtime#3092, kubernetes-sigs/kueue#15537,
// kubernetes-sigs/karpenter#2100, cilium/cilium#24267 and #30054,
// kubernetes/kubernetes#49472 and #53793.
func TestCaseK01HeartbeatBehindBulkWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(20), shaper.WithClasses(2, shaper.Strict))
		bulk, renewals := newRecorder(), newRecorder()
		for range 400 {
			bulk.wait(t.Context(), s)
		}
		for i := range 9 {
			renewals.until(2025*ms + time.Duration(i)*2*time.Second)
			ctx, cancel := context.WithTimeout(shaper.WithClass(t.Context(), 0), 10*time.Second)
			defer cancel()
			renewals.wait(ctx, s)
		}
		pass(time.Minute)
		assert.Equal(t, steps(2050*ms, 2*time.Second, 9), renewals.left())
		assert.True(t, slices.IsSorted(bulk.left()))
		all := append(bulk.left(), renewals.left()...)
		slices.Sort(all)
		assert.Equal(t, steps(0, 50*ms, 409), all)
	})
}

// Sources: simpledotorg/simple-server#3699, alphagov/notifications-api#1722,
// capcom6/android-sms-gateway#206, postalserver/postal#443, PostHog/posthog#67029.
func TestCaseJ11OneTimePasswordBehindACampaign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10), shaper.WithClasses(2, time.Hour))
		campaign, password := newRecorder(), newRecorder()
		for range 601 {
			campaign.wait(t.Context(), s)
		}
		password.until(250 * ms)
		ctx, cancel := context.WithTimeout(shaper.WithClass(t.Context(), 0), 30*time.Second)
		defer cancel()
		password.wait(ctx, s)
		pass(2 * time.Minute)
		assert.Equal(t, []time.Duration{300 * ms}, password.left())
		assert.Len(t, campaign.left(), 601)
	})
}

// Behind 2,000 calls of the last class an urgent one is the next to leave, but overtakes
// none that came more than overtake times the difference of the classes before it.
func TestUrgentCallsOvertakeAsFarAsTheyMay(t *testing.T) {
	for overtake, want := range map[time.Duration]time.Duration{
		shaper.Strict: 60100 * ms, time.Hour: 60100 * ms, 31 * time.Second: 60100 * ms,
		30 * time.Second: 200100 * ms, 0: 200100 * ms, // they came 60.05 s before it
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newShaper(t, scheduler.PerSecond(10), shaper.WithClasses(3, overtake), shaper.WithQueue(3000))
			r := newRecorder()
			for range 2001 {
				r.wait(t.Context(), s)
			}
			r.until(60050 * ms)
			urgent := r.wait(shaper.WithClass(t.Context(), 0), s)
			pass(time.Hour)
			assert.Equal(t, want, urgent.at, "overtake %v", overtake)
		})
	}
}

// Under constant load of the most urgent class, of all that the rate allows, a call of the
// last one leaves when those have left that came within its bound after it.
func TestTheLastClassWaitsAtMostItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval, overtake, classes = 100 * ms, time.Second, 4
		s := newShaper(t, scheduler.Every(interval), shaper.WithClasses(classes, overtake))
		urgent, last := newRecorder(), newRecorder()
		for range 2 { // one leaves, and one waits all the time
			urgent.wait(shaper.WithClass(t.Context(), 0), s)
		}
		late := last.wait(t.Context(), s)
		for range 100 {
			pass(interval)
			urgent.wait(shaper.WithClass(t.Context(), 0), s)
		}
		pass(time.Minute)
		assert.Equal(t, (classes-1)*overtake+2*interval, late.at)
		assert.Len(t, urgent.left(), 102)
	})
}

// Promise 13: of the calls of one Shaper none that arrives more than overtake times the
// difference of their classes later leaves earlier, whatever is cancelled or held.
func TestPromise13BoundedOvertaking(t *testing.T) {
	trial.Run(t, 200, func(t *testing.T, rng *rand.Rand) {
		synctest.Test(t, func(t *testing.T) {
			classes := 1 + rng.IntN(4)
			overtake := time.Duration(rng.Int64N(int64(2 * time.Second)))
			s := newShaper(t, scheduler.PerSecond(10), shaper.WithClasses(classes, overtake), shaper.WithBurst(1+rng.IntN(3)))
			r := newRecorder()
			type asked struct {
				at    time.Duration
				class int
			}
			var calls []asked
			var cancels []context.CancelFunc
			for range 80 {
				pass(time.Duration(rng.Int64N(int64(150 * ms))))
				switch rng.IntN(12) {
				case 0:
					s.HoldUntil(time.Now().Add(time.Duration(rng.Int64N(int64(time.Second)))))
				case 1:
					if len(cancels) > 0 {
						cancels[rng.IntN(len(cancels))]()
					}
				default:
					class := rng.IntN(classes)
					ctx, cancel := context.WithCancel(shaper.WithClass(t.Context(), class))
					t.Cleanup(cancel)
					cancels = append(cancels, cancel)
					calls = append(calls, asked{time.Since(r.start), class})
					cost := 1 + rng.IntN(3)
					r.submit(func() error { return s.WaitN(ctx, cost) })
				}
			}
			pass(time.Hour)
			for i, a := range r.calls {
				for j, b := range r.calls {
					if a.err != nil || b.err != nil || a.at <= b.at {
						continue
					}
					// b left before a, so it may not have come much later.
					most := time.Duration(max(0, calls[i].class-calls[j].class)) * overtake
					require.LessOrEqual(t, calls[j].at-calls[i].at, most, "call %d overtook %d", j, i)
				}
			}
		})
	})
}

func TestClassesOfAGroupAreThoseOfEachKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup[string](t, scheduler.PerSecond(1), shaper.WithClasses(2, shaper.Strict))
		r := newRecorder()
		for _, key := range []string{"a", "b"} {
			for range 3 {
				r.submit(func() error { return g.Wait(t.Context(), key) })
			}
		}
		urgent := r.submit(func() error { return g.Wait(shaper.WithClass(t.Context(), 0), "a") })
		pass(time.Minute)
		assert.Equal(t, time.Second, urgent.at)
		assert.Equal(t, []time.Duration{0, 2 * time.Second, 3 * time.Second, 0, time.Second, 2 * time.Second, time.Second}, r.left())
	})
}

// A more urgent newcomer that needs less than the head leaves while that waits on.
func TestNewcomerDisplacesTheHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10), shaper.WithBurst(5), shaper.WithClasses(2, shaper.Strict))
		r := newRecorder()
		require.True(t, s.AllowN(3))
		big := r.submit(func() error { return s.WaitN(t.Context(), 5) })
		small := r.submit(func() error { return s.WaitN(shaper.WithClass(t.Context(), 0), 2) })
		assert.Zero(t, small.at)
		assert.True(t, small.ended)
		pass(time.Minute)
		assert.Equal(t, 500*ms, big.at)
	})
}

func TestClassesAreChecked(t *testing.T) {
	for want, opt := range map[string]shaper.Option{
		"0 classes":           shaper.WithClasses(0, 0),
		"257 classes":         shaper.WithClasses(257, 0),
		"overtake -1ns: must": shaper.WithClasses(2, -1),
	} {
		_, err := shaper.New(scheduler.PerSecond(1), opt)
		assert.ErrorContains(t, err, want)
	}
	assert.PanicsWithValue(t, "shaper: class -1: must not be negative", func() { shaper.WithClass(t.Context(), -1) })
}

func TestOldestIsOfAllClasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(1), shaper.WithClasses(3, shaper.Strict))
		r := newRecorder()
		for range 2 { // one leaves
			r.wait(t.Context(), s)
		}
		pass(300 * ms)
		r.wait(shaper.WithClass(t.Context(), 0), s)
		pass(100 * ms)
		assert.Equal(t, 400*ms, s.Stats().Oldest, "the urgent call is the head, and younger")
		pass(600 * ms)
		assert.Equal(t, time.Second, s.Stats().Oldest)
		pass(time.Second)
		assert.Zero(t, s.Stats().Oldest)
	})
}

// unreadable is a context whose Value panics.
type unreadable struct{ context.Context }

func (unreadable) Value(any) any { panic("unreadable") }

func TestContextWhoseValuePanics(t *testing.T) {
	ctx := unreadable{t.Context()}
	s := newShaper(t, scheduler.PerHour(1), shaper.WithClasses(2, 0))
	require.True(t, s.Allow())
	assert.PanicsWithValue(t, "unreadable", func() { _ = s.Wait(ctx) })
	assert.PanicsWithValue(t, "unreadable", func() { _ = s.Acquire(ctx, 1) })
	conserved(t, s)

	g := newGroup[string](t, scheduler.PerHour(1), shaper.WithClasses(2, 0))
	require.True(t, g.Allow("a"))
	assert.PanicsWithValue(t, "unreadable", func() { _ = g.Wait(ctx, "a") })
	assert.PanicsWithValue(t, "unreadable", func() { _ = g.Acquire(ctx, "b", 1) })
	conservedGroup(t, g)
	assert.Equal(t, 1, g.Len(), "b owes nothing")
}

// Urgent calls overtake those of other keys, too: one behind 2,000 of the last class is next,
// strict or within its bound, and none that is not.
func TestUrgentCallBehindManyKeys(t *testing.T) {
	for name, tc := range map[string]struct {
		overtake time.Duration
		left     time.Duration
	}{
		"strict":     {shaper.Strict, 10 * time.Second},
		"within":     {5 * time.Second, 10 * time.Second},
		"not within": {time.Second, 200 * time.Second}, // all have come more than 2 s before
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				account := newShaper(t, scheduler.PerSecond(10), shaper.WithClasses(3, tc.overtake), shaper.WithQueue(3000))
				g := newGroup[int](t, scheduler.Unlimited, shaper.Under(account))
				bulk, urgent := 0, newRecorder()
				for i := range 2000 {
					_, err := g.Enqueue(i%200, shaper.Call{Class: 2}, func(error) { bulk++ })
					require.NoError(t, err)
				}
				urgent.until(9950 * ms)
				ctx := shaper.WithClass(t.Context(), 0)
				urgent.submit(func() error { return g.Wait(ctx, 1000) })
				pass(300 * time.Second)
				assert.Equal(t, []time.Duration{tc.left}, urgent.left())
				assert.Equal(t, 2000, bulk)
			})
		})
	}
}

// Under constant load of the most urgent class a call of the last waits no longer than its bound:
// until those have left that came within (n-1) times overtake after it.
func TestLastClassWaitsForItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const overtake = 2 * time.Second
		account := newShaper(t, scheduler.PerSecond(10), shaper.WithClasses(3, overtake))
		g := newGroup[int](t, scheduler.Unlimited, shaper.Under(account))
		r := newRecorder()
		require.True(t, account.Allow())
		r.submit(func() error { return g.Wait(shaper.WithClass(t.Context(), 2), 0) })
		for i := range 100 { // as many as leave, all the time
			_, err := g.Enqueue(1+i%7, shaper.Call{Class: 0}, func(error) {})
			require.NoError(t, err)
			pass(100 * ms)
		}
		assert.Equal(t, []time.Duration{4200 * ms}, r.left(), "those of 4 s, and its own turn")
	})
}

// A heartbeat is not behind the bulk of other keys, and a password not behind a campaign.
func TestCaseK01J11WithKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account := newShaper(t, scheduler.PerSecond(20), shaper.WithClasses(2, shaper.Strict))
		g := newGroup[int](t, scheduler.Unlimited, shaper.Under(account))
		bulk, renewals := newRecorder(), newRecorder()
		for i := range 400 {
			bulk.submit(func() error { return g.Wait(t.Context(), i%40) })
		}
		for i := range 9 {
			renewals.until(2025*ms + time.Duration(i)*2*time.Second)
			ctx, cancel := context.WithTimeout(shaper.WithClass(t.Context(), 0), 10*time.Second)
			defer cancel()
			renewals.submit(func() error { return g.Wait(ctx, 40) })
		}
		pass(time.Minute)
		assert.Equal(t, steps(2050*ms, 2*time.Second, 9), renewals.left())
		assert.True(t, slices.IsSorted(bulk.left()))
		all := append(bulk.left(), renewals.left()...)
		slices.Sort(all)
		assert.Equal(t, steps(0, 50*ms, 409), all)
	})
}
