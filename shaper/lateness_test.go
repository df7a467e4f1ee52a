package shaper_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// Which calls may claim to have been late, and for how long: a call that finds the line empty may
// go back to the instant at which its caller would have come, had the timer been on time.
// Each test here is a case in which that must not reach back further.

const us = time.Microsecond

// waitN submits a call of the given cost.
func (r *recorder) waitN(ctx context.Context, s *shaper.Shaper, cost int) *submitted {
	return r.submit(func() error { return s.WaitN(ctx, cost) })
}

// acquire submits a call of one unit that needs a place.
func (r *recorder) acquire(ctx context.Context, s *shaper.Shaper) *submitted {
	return r.submit(func() error { return s.Acquire(ctx, 1) })
}

// 1000/s, burst 2, tolerance 5 ms. Two units at 0: TAT is 2 ms. Two calls wait, due at 1 ms
// and 2 ms; the timer is 4 ms late, so both leave at 5 ms, and TAT is 4 ms: the bucket has
// been full since then. At 5 ms the rate becomes 10/s. At 5.5 ms two calls find the full
// bucket and leave. The second unit after them is owed: TAT is 5.5 ms + 2·100 ms, and the
// next is due at 105.5 ms. The first of the two came when TAT had passed, so it was not
// late: neither the late wake nor the new rate changes that.
func TestRateLoweredAfterALateWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(1000), shaper.WithBurst(2), shaper.WithClock(lateOnce(4*ms)))
		r := newRecorder()
		r.waitN(t.Context(), s, 2)
		r.wait(t.Context(), s)
		r.wait(t.Context(), s)
		r.until(5 * ms)
		require.NoError(t, s.SetRate(scheduler.PerSecond(10)))
		r.until(5500 * us)
		for range 3 {
			r.wait(t.Context(), s)
		}
		pass(time.Second)
		assert.Equal(t, []time.Duration{0, 5 * ms, 5 * ms, 5500 * us, 5500 * us, 105500 * us}, r.left())
	})
}

// A Charge is a latest instant on the schedule, too.
//
// 1000/s, burst 5. Five units at 0, one more, due at 1 ms, leaves at 5 ms: TAT is 6 ms. At
// 6.2 ms one unit is charged: TAT is 7.2 ms. At 7.7 ms a call finds the bucket full and
// leaves: TAT is 8.7 ms, which is when five units may leave.
func TestChargedSinceALateWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(1000), shaper.WithBurst(5), shaper.WithClock(lateOnce(4*ms)))
		r := newRecorder()
		r.waitN(t.Context(), s, 5)
		r.wait(t.Context(), s)
		r.until(6200 * us)
		s.Charge(1)
		r.until(7700 * us)
		r.wait(t.Context(), s)
		r.waitN(t.Context(), s, 5)
		pass(time.Second)
		assert.Equal(t, []time.Duration{0, 5 * ms, 7700 * us, 8700 * us}, r.left())
	})
}

// No timer is late here. The head needs two units; the call behind it could have left at
// 2.5 ms were it not for the head. The head gives up at 3 ms, and the call leaves then and
// was not late: no call has credit for the half millisecond in which the bucket was full. So two
// units that come at 155 ms, when the bucket is full again, are due when they come.
func TestHeirAfterARateChangeWasNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(1000), shaper.WithBurst(2))
		r := newRecorder()
		r.waitN(t.Context(), s, 2)
		r.wait(t.Context(), s)
		head, giveUp := context.WithCancel(t.Context())
		r.waitN(head, s, 2)
		r.wait(t.Context(), s)
		r.until(2500 * us)
		require.NoError(t, s.SetRate(scheduler.PerSecond(10)))
		r.until(3 * ms)
		giveUp()
		r.until(155 * ms)
		r.waitN(t.Context(), s, 2)
		r.wait(t.Context(), s)
		pass(time.Second)
		assert.Equal(t, []time.Duration{0, ms, 3 * ms, 155 * ms, 255 * ms}, r.left())
	})
}

// No timer is late here either. A call of one unit stands behind one that needs a full
// bucket, and leaves at the very instant at which that one gives up: it was not late. So
// five units that find the bucket full at 603 ms are due at 603 ms, and five more at 1103 ms.
func TestHeirWasNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10), shaper.WithBurst(5))
		r := newRecorder()
		r.waitN(t.Context(), s, 5)
		head, giveUp := context.WithCancel(t.Context())
		r.waitN(head, s, 5)
		r.wait(t.Context(), s)
		r.until(300 * ms)
		giveUp()
		r.until(603 * ms)
		r.waitN(t.Context(), s, 5)
		r.waitN(t.Context(), s, 5)
		pass(time.Minute)
		assert.Equal(t, []time.Duration{0, 300 * ms, 603 * ms, 1103 * ms}, r.left())
	})
}

// The same with the defaults: the head waits for a place until its context ends at 1 s. The
// call behind it leaves then, and not late; the next one T later.
func TestHeirBehindAFullHouseWasNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10), shaper.WithMaxInFlight(1))
		r := newRecorder()
		r.acquire(t.Context(), s)
		ctx, giveUp := context.WithTimeout(t.Context(), time.Second)
		defer giveUp()
		r.acquire(ctx, s)
		r.wait(t.Context(), s)
		r.wait(t.Context(), s)
		pass(time.Minute)
		assert.Equal(t, []time.Duration{0, time.Second, 1100 * ms}, r.left())
	})
}

// The head is late itself when it gives up: its heirs were late by no more than it was.
func TestHeirOfALateHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(1000), shaper.WithClock(lateOnce(4*ms)))
		r := newRecorder()
		r.wait(t.Context(), s)
		head, giveUp := context.WithCancel(t.Context())
		r.wait(head, s) // due at 1 ms
		for range 5 {
			r.wait(t.Context(), s)
		}
		r.until(3 * ms)
		giveUp()
		pass(time.Second)
		assert.Equal(t, []time.Duration{0, 3 * ms, 3 * ms, 3 * ms, 4 * ms, 5 * ms}, r.left())
	})
}

// A caller that was late before a gate has not come back since. A call that passes the gate
// first ends its claim, and so must a Charge: TAT is 2.2 s then, two units that find the
// bucket full at 2.203 s are due then, and two more 200 ms later.
func TestGateEndsWhatWasLateBeforeIt(t *testing.T) {
	for name, first := range map[string]func(r *recorder, s *shaper.Shaper){
		"call":   func(r *recorder, s *shaper.Shaper) { r.wait(context.Background(), s) },
		"charge": func(_ *recorder, s *shaper.Shaper) { s.Charge(1) },
		"allow":  func(_ *recorder, s *shaper.Shaper) { s.Allow() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShaper(t, scheduler.PerSecond(10), shaper.WithBurst(2), shaper.WithClock(lateOnce(5*ms)))
				r := newRecorder()
				r.waitN(t.Context(), s, 2)
				r.wait(t.Context(), s)
				r.until(105 * ms)
				require.Equal(t, []time.Duration{0, 105 * ms}, r.left())
				r.until(time.Second)
				s.Pause()
				r.until(2 * time.Second)
				s.Resume()
				first(r, s) // the gate opens for one unit
				r.until(2203 * ms)
				y, z := r.waitN(t.Context(), s, 2), r.waitN(t.Context(), s, 2)
				pass(time.Minute)
				assert.Equal(t, 2203*ms, y.at)
				assert.Equal(t, 2403*ms, z.at)
			})
		})
	}
}

// A key that owes nothing cannot be told from a fresh one, whether it was asked for its
// Delay or not, and its last call, which was 10 ms late twenty minutes ago, gives it no
// claim. Ticks of a rate with so fine a fraction reach no further back than 19 minutes.
func TestAskingAKeyChangesNothing(t *testing.T) {
	for _, ask := range []bool{false, true} {
		t.Run(fmt.Sprint(ask), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rate := scheduler.Per(999_983, 99_700*time.Second) // T is 99.7 ms
				g := newGroup[string](t, rate, shaper.WithBurst(2), shaper.WithClock(lateOnce(10*ms)))
				require.True(t, g.AllowN("a", 2))
				r := newRecorder()
				r.submit(func() error { return g.Wait(t.Context(), "a") })
				r.until(20 * time.Minute)
				require.Equal(t, []time.Duration{rate.Interval() + 10*ms}, r.left())
				if ask {
					assert.Zero(t, g.Delay("a"), "it owes nothing")
				}
				pass(4 * ms)
				assert.True(t, g.AllowN("a", 2), "the bucket is full")
				pass(rate.For(2) - 3*ms)
				assert.False(t, g.AllowN("a", 2), "3 ms early")
				pass(3 * ms)
				assert.True(t, g.AllowN("a", 2))
			})
		})
	}
}

// A tolerance of hours is odd, but allowed. In ticks so long a lateness might wrap around; a
// key that owes nothing must not be locked out for it.
func TestToleranceOfHoursLocksNoKeyOut(t *testing.T) {
	for _, tolerance := range []time.Duration{5 * time.Minute, 3 * time.Hour, 1000 * time.Hour, 1<<63 - 1} {
		for _, rate := range []scheduler.Rate{scheduler.PerSecond(999_983), scheduler.Per(1<<20, 3*time.Second+1), scheduler.PerSecond(3)} {
			for _, late := range []time.Duration{3 * time.Minute, 174 * time.Minute, 300 * time.Hour} {
				synctest.Test(t, func(t *testing.T) {
					g := newGroup[string](t, rate, shaper.WithTolerance(tolerance), shaper.WithClock(lateOnce(late)))
					require.True(t, g.Allow("a"))
					require.NoError(t, g.Wait(t.Context(), "a"))
					pass(168 * time.Minute)
					g.Len() // the shard moves the origin of its ticks, as for any call
					about := fmt.Sprintf("rate %v tolerance %v late %v", rate, tolerance, late)
					assert.Zero(t, g.Delay("a"), about)
					assert.True(t, g.Allow("a"), about)
				})
			}
		}
	}
}
