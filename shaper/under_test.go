package shaper_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// An account of 20/s and senders of 2/s: every call of a sender at least 500 ms apart, those
// of the account exactly 50 ms apart, and no call waits for the limit of another's sender.
func TestSendersUnderAnAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account := newShaper(t, scheduler.PerSecond(20))
		senders, err := shaper.NewGroup[string](scheduler.PerSecond(2), shaper.Under(account))
		require.NoError(t, err)
		r := newRecorder()
		of := func(key string) *submitted {
			return r.submit(func() error { return senders.Wait(t.Context(), key) })
		}
		var others, ofA []*submitted
		for i := range 6 {
			others = append(others, of(fmt.Sprint("first ", i)))
		}
		for range 4 {
			ofA = append(ofA, of("a"))
		}
		for i := range 30 {
			others = append(others, of(fmt.Sprint("later ", i)))
		}
		pass(time.Minute)
		left := r.left()
		slices.Sort(left)
		assert.Equal(t, steps(0, 50*ms, 40), left)
		assert.Equal(t, []time.Duration{300 * ms, 800 * ms, 1300 * ms, 1800 * ms}, timesOf(ofA))
		assert.True(t, slices.IsSorted(timesOf(others)))
		assert.Equal(t, 0, senders.Len())
	})
}

func timesOf(calls []*submitted) (at []time.Duration) {
	for _, c := range calls {
		at = append(at, c.at)
	}
	return at
}

// A held key is in the way of no other, and does not take the account when it is released.
func TestHeldKeyUnderAnAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account := newShaper(t, scheduler.PerSecond(10))
		g, err := shaper.NewGroup[string](scheduler.PerSecond(10), shaper.Under(account), shaper.WithBurst(100))
		require.NoError(t, err)
		r := newRecorder()
		of := func(key string) *submitted {
			return r.submit(func() error { return g.Wait(t.Context(), key) })
		}
		require.NoError(t, g.HoldUntil("held", r.start.Add(1050*ms)))
		var held, others []*submitted
		for range 5 {
			held = append(held, of("held"))
		}
		for range 14 {
			others = append(others, of("other"))
		}
		r.until(500 * ms)
		state := keyStates(g)
		assert.Equal(t, shaper.ForHold, state["held"].WaitsFor)
		assert.Equal(t, r.start.Add(1050*ms), state["held"].NextDue)
		assert.Equal(t, shaper.ForUnitsOfLine, state["other"].WaitsFor)
		pass(time.Minute)
		// The held ones came first, but count as of 1.05 s: those of the other key go before
		// them. The burst of the key is forfeited: its own calls are 100 ms apart.
		assert.Equal(t, steps(0, 100*ms, 14), timesOf(others))
		assert.Equal(t, steps(1400*ms, 100*ms, 5), timesOf(held))
	})
}

func keyStates(g *shaper.Group[string]) map[string]shaper.KeyState {
	states := make(map[string]shaper.KeyState)
	for key, state := range g.Range {
		states[key] = state
	}
	return states
}

// Acquire takes a place at the key and at the account, or at none: a head that waits for a
// place of its key is in the way of no other key, one that waits for a place of the account
// holds the line.
func TestPlacesUnderAnAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account := newShaper(t, scheduler.PerSecond(1000), shaper.WithMaxInFlight(2))
		g, err := shaper.NewGroup[string](scheduler.PerSecond(1000), shaper.Under(account), shaper.WithMaxInFlight(1))
		require.NoError(t, err)
		r := newRecorder()
		of := func(key string) *submitted {
			return r.submit(func() error { return g.Acquire(t.Context(), key, 1) })
		}
		first, second, other, third := of("a"), of("a"), of("b"), of("c")
		plain := r.submit(func() error { return account.Wait(t.Context()) })
		pass(100 * ms)
		assert.Equal(t, []bool{true, false, true, false, false}, []bool{first.ended, second.ended, other.ended, third.ended, plain.ended})
		state := keyStates(g)
		assert.Equal(t, shaper.ForPlace, state["a"].WaitsFor)
		assert.Equal(t, shaper.ForPlace, state["c"].WaitsFor)
		g.Release("a") // free at both, and the second of a came before c
		pass(100 * ms)
		assert.Equal(t, []bool{true, false, false}, []bool{second.ended, third.ended, plain.ended})
		g.Release("b")
		pass(100 * ms)
		assert.Equal(t, []bool{true, true}, []bool{third.ended, plain.ended})
		assert.EqualValues(t, 2, account.Stats().InFlight)
		g.Release("a")
		g.Release("c")
		assert.EqualValues(t, 0, account.Stats().InFlight)
		pass(time.Second)
		assert.Zero(t, g.Len())
	})
}

// A line that is full shares its room: the key with the most gives way, and one that has no
// more than the others is refused.
func TestRoomUnderAnAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account := newShaper(t, scheduler.PerSecond(1), shaper.WithQueue(5)) // of which the call that has just left takes one
		g, err := shaper.NewGroup[string](scheduler.PerSecond(1), shaper.Under(account))
		require.NoError(t, err)
		require.True(t, account.Allow())
		r := newRecorder()
		of := func(key string) *submitted {
			return r.submit(func() error { return g.Wait(t.Context(), key) })
		}
		require.NoError(t, g.HoldUntil("noisy", r.start.Add(time.Hour)))
		var noisy []*submitted
		for range 5 {
			noisy = append(noisy, of("noisy"))
		}
		assert.ErrorIs(t, noisy[4].err, shaper.ErrQueueFull)
		a, b := of("a"), of("b")
		assert.ErrorIs(t, noisy[3].err, shaper.ErrQueueFull, "the newest gives way")
		assert.ErrorIs(t, noisy[2].err, shaper.ErrQueueFull)
		assert.False(t, a.ended || b.ended)
		c := of("c")
		assert.ErrorIs(t, noisy[1].err, shaper.ErrQueueFull)
		d := of("d") // four keys have a call each
		assert.ErrorIs(t, d.err, shaper.ErrQueueFull)
		pass(4 * time.Second)
		assert.Equal(t, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}, timesOf([]*submitted{a, b, c}))
		conserved(t, account)
		st := g.Stats()
		assert.Equal(t, [...]int64{9, 3, 5, 1}, [...]int64{st.Submitted, st.Left, st.Refused, st.Waiting})
	})
}

// What cannot work where it is given is an error.
func TestUnderRefusesWhatCannotWork(t *testing.T) {
	account := newShaper(t, scheduler.PerSecond(1), shaper.WithClasses(3, shaper.Strict))
	group := func(opts ...shaper.Option) error {
		_, err := shaper.NewGroup[string](scheduler.PerSecond(1), opts...)
		return err
	}
	weights := shaper.WithWeights(func(string) int { return 1 })
	assert.EqualError(t, group(shaper.Under(nil)), "shaper: under nil: must be a Shaper")
	assert.Error(t, group(weights))
	assert.Error(t, group(shaper.Under(account), shaper.WithClock(clock.NewMock())))
	assert.Error(t, group(shaper.Under(account), shaper.WithPreciseTiming()))
	assert.Error(t, group(shaper.Under(account), shaper.WithClasses(2, shaper.Strict)))
	assert.NoError(t, group(shaper.Under(account), shaper.WithClasses(3, shaper.Strict), weights))
	assert.Error(t, group(shaper.Under(account), shaper.WithWeights(func(int) int { return 1 })))
	_, err := shaper.New(scheduler.PerSecond(1), shaper.Under(account))
	assert.Error(t, err)
	_, err = shaper.New(scheduler.PerSecond(1), weights)
	assert.Error(t, err)
	require.NoError(t, account.Close())
	assert.ErrorIs(t, group(shaper.Under(account)), shaper.ErrClosed)
}
