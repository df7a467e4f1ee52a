package shaper_test

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
	"github.com/sluice-go/sluice/shaper"
)

// A key with a schedule of its own is made while a call of another key is due, as the timer is
// late. That call leaves, and its function may use the Group: no lock is held.
func TestNewKeyWhileACallIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account := newShaper(t, scheduler.PerSecond(10), shaper.WithClock(lateOnce(time.Second)))
		g := newGroup[string](t, scheduler.Unlimited, shaper.Under(account), shaper.WithSchedules(func(string) (scheduler.Scheduler, error) {
			return slidingLog(10, time.Second), nil
		}))
		require.True(t, account.Allow())
		told := 0
		_, err := g.Enqueue("a", shaper.Call{}, func(err error) {
			assert.NoError(t, err)
			g.Len()
			told++
		})
		require.NoError(t, err)
		time.Sleep(500 * ms)
		require.NoError(t, g.Charge("b", 0))
		pass(time.Minute)
		assert.Equal(t, 1, told)
	})
}

// A key becomes free, and the timer is late. A look at it lets no newcomer slip past.
func TestALookLetsNoCallSlipPast(t *testing.T) {
	for name, look := range map[string]func(*shaper.Shaper, *shaper.Group[string]){
		"Range": func(_ *shaper.Shaper, g *shaper.Group[string]) { keyStates(g) },
		"Stats": func(account *shaper.Shaper, _ *shaper.Group[string]) { account.Stats() },
		"Keys":  func(account *shaper.Shaper, _ *shaper.Group[string]) { account.Keys() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				account := newShaper(t, scheduler.PerSecond(10), shaper.WithClock(lateOnce(time.Second)))
				g := newGroup[string](t, scheduler.PerSecond(5), shaper.Under(account))
				r := newRecorder()
				for range 2 {
					r.submit(func() error { return g.Wait(t.Context(), "a") })
				}
				r.until(220 * ms) // the second has been due for 20 ms
				look(account, g)
				assert.False(t, account.Allow())
				synctest.Wait()
				assert.Equal(t, []time.Duration{0, 220 * ms}, r.left())
			})
		})
	}
}

// A function of Enqueue that panics leaves the key as it is: it is forgotten in time.
func TestKeyOfAnAnswerThatPanics(t *testing.T) {
	for name, under := range map[string]bool{"alone": false, "under": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var opts []shaper.Option
				if under {
					opts = append(opts, shaper.Under(newShaper(t, scheduler.Unlimited)))
				}
				g := newGroup[string](t, scheduler.PerSecond(10), opts...)
				require.NoError(t, g.Scale("a", 1, 2))
				assert.Panics(t, func() {
					_, _ = g.Enqueue("a", shaper.Call{}, func(error) { panic(errors.New("mine")) })
				})
				require.NoError(t, g.Scale("a", 1, 1))
				time.Sleep(time.Second)
				assert.Zero(t, g.Len())
				conservedGroup(t, g)
			})
		})
	}
}

// The schedule of a key under an account may learn, too; see TestCaseJ12.
func TestScheduleOfAKeyUnderAnAccountLearns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, err := scheduler.NewSlidingLog(2, 10*time.Second)
		require.NoError(t, err)
		limit := &learned{log: log}
		account := newShaper(t, scheduler.Unlimited)
		g := newGroup[string](t, scheduler.Unlimited, shaper.Under(account), shaper.WithSchedules(func(string) (scheduler.Scheduler, error) {
			return limit, nil
		}))
		r := newRecorder()
		for range 6 {
			r.submit(func() error { return g.Wait(t.Context(), "a") })
		}
		r.until(time.Second)
		limit.learn(t, 5)
		pass(time.Minute)
		s := time.Second
		assert.Equal(t, []time.Duration{0, 0, s, s, s, 10 * s}, r.left())
	})
}

// A weight counts from the instant at which it is set, not from the event before. 100 units of a
// have left at 0; b has as many calls, and at 50 s its weight becomes 9. In the fluid b has been
// served 25 units by then and 34 at 60 s. A call of c comes, which is served one unit while b is
// served 9: so it leaves behind 43 calls of b.
func TestWeightCountsFromWhenItIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account := newShaper(t, scheduler.PerSecond(1))
		g := newGroup[string](t, scheduler.Unlimited, shaper.Under(account), shaper.WithWeights(func(string) int { return 1 }))
		require.NoError(t, g.WaitN(t.Context(), "a", 100))
		var order []string
		enqueue := func(key string) {
			_, err := g.Enqueue(key, shaper.Call{}, func(error) { order = append(order, key) })
			require.NoError(t, err)
		}
		for range 100 {
			enqueue("b")
		}
		time.Sleep(50 * time.Second)
		require.NoError(t, g.SetWeight("b", 9))
		time.Sleep(10 * time.Second)
		enqueue("c")
		pass(time.Hour)
		before := 0
		for order[before] == "b" {
			before++
		}
		assert.InDelta(t, 43, before, 2)
	})
}

// An account that lets a call leave 3 ms late: so late are its callers, and calls of keys may
// claim it.
func lateAccount(t *testing.T, opts ...shaper.Option) (*shaper.Shaper, *recorder) {
	account := newShaper(t, scheduler.PerSecond(1000), append(opts, shaper.WithClock(lateOnce(3*ms)))...)
	r := newRecorder()
	require.NoError(t, account.Acquire(t.Context(), 1))
	r.wait(t.Context(), account)
	r.until(4 * ms)
	require.Equal(t, []time.Duration{4 * ms}, r.left())
	return account, r
}

// A key of which nothing is remembered claims what the account does, whenever its shard was
// searched: the calls due at 2, 3 and 4 ms leave.
func TestClaimOfAForgottenKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account, _ := lateAccount(t)
		g := newGroup[int](t, scheduler.PerSecond(1000), shaper.Under(account))
		g.Len()
		var left []bool
		for key := range 4 {
			left = append(left, g.Allow(key))
		}
		assert.Equal(t, []bool{true, true, true, false}, left)
	})
}

// A key may be less tolerant than its account, and is remembered while that makes a difference.
func TestLateKeyIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account := newShaper(t, scheduler.PerSecond(1000), shaper.WithClock(lateOnce(3*ms)))
		g := newGroup[string](t, scheduler.PerSecond(1000), shaper.Under(account), shaper.WithTolerance(ms))
		r := newRecorder()
		for range 2 {
			r.submit(func() error { return g.Wait(t.Context(), "a") })
		}
		r.until(5500 * us)
		require.Equal(t, []time.Duration{0, 4 * ms}, r.left())
		assert.Equal(t, 1, g.Len(), "its TAT has passed at 4 ms, but a claim may go back before that")
		r.until(7*ms + 1)
		assert.Zero(t, g.Len())
	})
}

// A key whose TAT has passed is remembered while a claim may go back before that: at 4 ms the
// account's claim is 2 ms, and that of the key 3.4 ms. So TAT of the account is 4.4 ms then.
func TestKeyIsRememberedForClaims(t *testing.T) {
	for name, limits := range map[string]shaper.Option{
		"rate": nil,
		"schedule": shaper.WithSchedules(func(string) (scheduler.Scheduler, error) {
			return slidingLog(1, 3400*us), nil
		}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				account := newShaper(t, scheduler.PerSecond(1000), shaper.WithClock(lateOnce(3*ms)))
				rate, opts := scheduler.Every(3400*us), []shaper.Option{shaper.Under(account)}
				if limits != nil {
					rate, opts = scheduler.Unlimited, append(opts, limits)
				}
				g := newGroup[string](t, rate, opts...)
				r := newRecorder()
				r.submit(func() error { return g.Wait(t.Context(), "a") })
				r.wait(t.Context(), account)
				r.until(4 * ms)
				assert.Equal(t, 1, g.Len())
				assert.True(t, g.Allow("a"))
				assert.False(t, account.Allow())
				r.until(time.Second)
				assert.Zero(t, g.Len())
			})
		})
	}
}

// A head that waits for a place of the account was not due before its key was paused.
func TestPausedWhileItWaitsForAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account, r := lateAccount(t, shaper.WithMaxInFlight(1))
		g := newGroup[string](t, scheduler.PerSecond(1000), shaper.Under(account))
		r.submit(func() error { return g.Acquire(t.Context(), "a", 1) })
		require.NoError(t, g.Pause("a"))
		assert.True(t, account.Allow())
		assert.False(t, account.Allow())
		account.Release()
		g.Resume("a")
		pass(time.Second)
	})
}

// What is charged to a key behind a gate of its own ends no lateness of the account: at 5.5 ms
// the claim is 5 ms.
func TestChargeBehindTheGateOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account, r := lateAccount(t)
		g := newGroup[string](t, scheduler.PerSecond(1000), shaper.Under(account))
		require.NoError(t, g.Pause("a"))
		g.Resume("a")
		require.NoError(t, g.Charge("a", 1))
		r.until(5500 * us)
		assert.True(t, account.Allow())
		r.until(6 * ms)
		assert.True(t, account.Allow())
	})
}

// The schedule of a key that always says "in a moment" keeps no core busy, nor does one that says
// something else each time that it is asked.
func TestBrokenScheduleOfAKeyKeepsNoCoreBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &broken{next: func(time.Time) time.Time { return time.Now().Add(1) }}
		account := newShaper(t, scheduler.PerSecond(1000))
		g := newGroup[string](t, scheduler.Unlimited, shaper.Under(account), shaper.WithSchedules(func(string) (scheduler.Scheduler, error) {
			return b, nil
		}))
		ctx, cancel := context.WithTimeout(t.Context(), 2*ms)
		defer cancel()
		assert.Equal(t, context.DeadlineExceeded, g.Wait(ctx, "a"))
		assert.Less(t, b.asked, 2000)
		b.next = func(t time.Time) time.Time { return t }
		assert.NoError(t, g.Wait(t.Context(), "a"), "mended, it lets calls leave")

		b.next = func(t time.Time) time.Time { return t.Add(time.Duration(b.asked % 2)) }
		var all sync.WaitGroup
		ctx, cancel = context.WithTimeout(t.Context(), 100*ms)
		defer cancel()
		for range 10 {
			all.Go(func() { _ = g.Wait(ctx, "a") })
		}
		all.Wait()
		conserved(t, account)
	})
}

// A head whose own schedule has closed while it waited for the account is in no call's way. It
// costs 2, for which the account has units at 10 s.
func TestHeadWhoseScheduleHasClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closes := time.Now().Add(5 * time.Second)
		account := newShaper(t, scheduler.Every(10*time.Second), shaper.WithBurst(2))
		g := newGroup[string](t, scheduler.Unlimited, shaper.WithBurst(2), shaper.Under(account), shaper.WithSchedules(func(string) (scheduler.Scheduler, error) {
			return &closing{at: closes}, nil
		}))
		r := newRecorder()
		require.True(t, account.Allow())
		r.submit(func() error { return g.WaitN(t.Context(), "a", 2) })
		r.until(4 * time.Second)
		assert.False(t, account.Allow())
		r.until(6 * time.Second)
		assert.True(t, account.Allow())
		pass(2 * time.Hour)
		assert.Equal(t, []time.Duration{time.Hour + 5*time.Second}, r.left())
	})
}

// closing is a schedule that is closed for an hour.
type closing struct{ at time.Time }

func (c *closing) Next(t time.Time, _, _ int64) time.Time {
	if opens := c.at.Add(time.Hour); !t.Before(c.at) && t.Before(opens) {
		return opens
	}
	return t
}
func (c *closing) Commit(_, _ time.Time, _ int64) {}
func (c *closing) MaxCost() int64                 { return 10 }
