package shaper_test

import (
	"context"
	"fmt"
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

// Sources: fiorix/go-smpp#2, linxGnu/gosmpp#72 and #73, OpenSmpp/opensmpp#48,
// jookies/jasmin#425, #708 and #925.
func TestCaseJ09WindowOfUnansweredMessages(t *testing.T) {
	send := func(ctx context.Context, s *shaper.Shaper, answered time.Duration) error {
		if err := s.Acquire(ctx, 1); err != nil {
			return err
		}
		time.AfterFunc(answered, s.Release)
		return nil
	}
	t.Run("window", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, r := newShaper(t, scheduler.PerSecond(50), shaper.WithMaxInFlight(10)), newRecorder()
			for range 30 {
				r.submit(func() error { return send(t.Context(), s, 500*ms) })
			}
			pass(time.Minute)
			assert.Equal(t, slices.Concat(steps(0, 20*ms, 10), steps(500*ms, 20*ms, 10), steps(1000*ms, 20*ms, 10)), r.left())
		})
	})
	t.Run("throttled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, r := newShaper(t, scheduler.PerSecond(50), shaper.WithMaxInFlight(10)), newRecorder()
			for i := range 12 {
				first := time.Now()
				r.submit(func() error {
					if err := send(t.Context(), s, 100*ms); err != nil || i != 2 {
						return err
					}
					time.Sleep(101 * ms)
					s.HoldUntil(time.Now().Add(time.Second))
					return send(shaper.WithArrival(t.Context(), first), s, 100*ms)
				})
			}
			pass(time.Minute)
			const resumed = 1141 * ms
			want := steps(0, 20*ms, 8)
			want[2] = resumed
			assert.Equal(t, append(want, steps(resumed+20*ms, 20*ms, 4)...), r.left(), "before all that came after it")
		})
	})
}

// Calls leave in the order of what they state, by whatever way they wait.
func TestArrivalThatIsKept(t *testing.T) {
	ways := map[string]func(t *testing.T) (wait func(context.Context) error, enqueue func(shaper.Call, func(error)) error){
		"Shaper": func(t *testing.T) (func(context.Context) error, func(shaper.Call, func(error)) error) {
			s := newShaper(t, scheduler.PerSecond(10))
			return s.Wait, func(c shaper.Call, done func(error)) error { _, err := s.Enqueue(c, done); return err }
		},
		"Group": func(t *testing.T) (func(context.Context) error, func(shaper.Call, func(error)) error) {
			k := newGroup[string](t, scheduler.PerSecond(10)).Of("k")
			return k.Wait, func(c shaper.Call, done func(error)) error { _, err := k.Enqueue(c, done); return err }
		},
		"key": func(t *testing.T) (func(context.Context) error, func(shaper.Call, func(error)) error) {
			k := newGroup[string](t, scheduler.PerSecond(10), shaper.Under(newShaper(t, scheduler.Unlimited))).Of("k")
			return k.Wait, func(c shaper.Call, done func(error)) error { _, err := k.Enqueue(c, done); return err }
		},
		"keys": func(t *testing.T) (func(context.Context) error, func(shaper.Call, func(error)) error) {
			g, n := newGroup[int](t, scheduler.Unlimited, shaper.Under(newShaper(t, scheduler.PerSecond(10)))), 0
			return func(ctx context.Context) error { n++; return g.Wait(ctx, n) },
				func(c shaper.Call, done func(error)) error { n++; _, err := g.Enqueue(n, c, done); return err }
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wait, enqueue := way(t)
				r, at := newRecorder(), func(d time.Duration) time.Time { return time.Now().Add(d) }
				for range 4 { // at 0, 1, 2, 3 ms
					r.submit(func() error { return wait(t.Context()) })
					pass(ms)
				}
				first, second, future := at(-3*ms), at(-2*ms), at(time.Hour) // 1 ms, 2 ms
				r.submit(func() error { return wait(shaper.WithArrival(t.Context(), second)) })
				for _, arrived := range []time.Time{second, first, time.Unix(0, 0), future} {
					r.submit(func() error {
						told := make(chan error, 1)
						if err := enqueue(shaper.Call{Arrived: arrived}, func(err error) { told <- err }); err != nil {
							return err
						}
						return <-told
					})
				}
				r.submit(func() error { return wait(t.Context()) })
				pass(time.Minute)
				assert.Equal(t, []time.Duration{
					0, 300 * ms, 600 * ms, 700 * ms, // those that state nothing
					400 * ms, 500 * ms, 200 * ms, 100 * ms, 800 * ms, 900 * ms,
				}, r.left())
			})
		})
	}
}

// A past arrival is no lateness: nothing of it may be claimed, even where hours may.
func TestPastArrivalClaimsNothing(t *testing.T) {
	opts := []shaper.Option{shaper.WithTolerance(time.Hour), shaper.WithMaxInFlight(1)}
	for name, of := range map[string]func(*testing.T) pacer{
		"Shaper": func(t *testing.T) pacer { return newShaper(t, scheduler.PerSecond(10), opts...) },
		"Group":  func(t *testing.T) pacer { return newKey(t, scheduler.PerSecond(10), opts...) },
		"under an account": func(t *testing.T) pacer {
			account := newShaper(t, scheduler.PerSecond(10), opts...)
			return newKey(t, scheduler.Unlimited, shaper.Under(account))
		},
		"key": func(t *testing.T) pacer {
			account := newShaper(t, scheduler.PerSecond(10), opts[1])
			return newKey(t, scheduler.PerSecond(10), shaper.Under(account), opts[0])
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, r := of(t), newRecorder()
				first := shaper.WithArrival(t.Context(), time.Now())
				for range 2 { // the second waits for a place
					r.submit(func() error { return p.Acquire(t.Context(), 1) })
				}
				pass(time.Minute)
				for range 3 {
					r.submit(func() error { return p.WaitN(first, 1) })
				}
				pass(time.Minute)
				p.Release()
				synctest.Wait()
				assert.Equal(t, append([]time.Duration{0, 2 * time.Minute}, steps(time.Minute, 100*ms, 3)...), r.left())
			})
		})
	}
}

// Against the rule itself: of all that wait the call goes next that has the least arrival, later
// by overtake for each class, of equals the more urgent and then the one that came first; and
// each is told how long that takes.
func TestArrivalsAndClasses(t *testing.T) {
	trial.Bubble(t, 300, func(t *testing.T, rng *rand.Rand) {
		const T = 100 * ms
		overtake := []time.Duration{0, 3 * ms, time.Hour, shaper.Strict}[rng.IntN(4)]
		s := newShaper(t, scheduler.PerSecond(10), shaper.WithClasses(3, overtake))
		require.True(t, s.Allow())
		pass(50 * ms)
		type waiting struct {
			came  time.Duration // that counts
			class int
			left  time.Time
		}
		var all []*waiting
		before := func(a, b *waiting) bool { // a joined earlier
			switch {
			case a.class == b.class:
				return a.came <= b.came
			case a.class < b.class:
				return overtake == shaper.Strict || a.came <= b.came+time.Duration(b.class-a.class)*overtake
			}
			return overtake != shaper.Strict && a.came+time.Duration(a.class-b.class)*overtake < b.came
		}
		start := time.Now().Add(-50 * ms)
		for range 1 + rng.IntN(20) {
			pass(time.Duration(rng.IntN(2)) * ms)
			w := &waiting{came: time.Since(start), class: rng.IntN(3)}
			call := shaper.Call{Class: w.class}
			if rng.IntN(2) == 0 {
				stated := time.Duration(rng.IntN(60)) * ms
				w.came = min(stated, w.came)
				call.Arrived = start.Add(stated)
				w.came = min(stated-1, time.Since(start))
			}
			// So many leave before it, in any order of the classes that are left.
			ahead := 0
			for _, other := range all {
				if before(other, w) {
					ahead++
				}
			}
			told := s.DelayOf(call)
			require.Equal(t, time.Until(start.Add(T))+time.Duration(ahead)*T, told, "%+v behind %d", w, len(all))
			_, err := s.Enqueue(call, func(error) { w.left = time.Now() })
			require.NoError(t, err)
			all = append(all, w)
			slices.SortStableFunc(all, func(a, b *waiting) int {
				switch {
				case before(a, b) && before(b, a), !before(a, b) && !before(b, a):
					return 0
				case before(a, b):
					return -1
				}
				return 1
			})
		}
		pass(time.Hour)
		for i, w := range all {
			require.Equal(t, fmt.Sprint(time.Duration(i+1)*T), fmt.Sprint(w.left.Sub(start)), "%+v", w)
		}
	})
}
