package shaper_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// A hold is told as it was set, so that it is known again whatever the clock has done since; the
// later one of two; and not once it is lifted or over.
func TestHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account, err := shaper.New(scheduler.PerSecond(10))
		require.NoError(t, err)
		g, err := shaper.NewGroup[string](scheduler.PerSecond(10), shaper.Under(account))
		require.NoError(t, err)
		held := func(want time.Time, tell func() (time.Time, bool)) {
			t.Helper()
			until, held := tell()
			require.Equal(t, !want.IsZero(), held)
			require.Equal(t, want, until)
		}
		a, b := g.Of("a"), g.Of("b")
		none := time.Time{}
		held(none, account.Held)
		held(none, a.Held)

		minute := time.Now().Add(time.Minute).Round(0) // a user's time may have no monotonic reading
		a.HoldUntil(minute)
		held(minute, a.Held)
		held(none, b.Held)
		held(none, account.Held)

		a.HoldUntil(minute.Add(-1)) // moves nothing back
		held(minute, a.Held)

		hour := time.Now().Add(time.Hour)
		require.True(t, g.HoldAccount(hour))
		for _, tell := range []func() (time.Time, bool){a.Held, b.Held, account.Held} {
			held(hour, tell)
		}
		account.Resume()
		held(minute, a.Held)
		held(none, b.Held)

		a.Resume()
		held(none, a.Held)
		require.NoError(t, a.Pause())
		held(none, a.Held)

		b.HoldUntil(minute)
		time.Sleep(time.Minute - 1)
		held(minute, b.Held)
		time.Sleep(1 * time.Nanosecond)
		held(none, b.Held)
		require.True(t, g.HoldAccount(time.Time{}), "there is one, and the zero Time holds nothing")
		held(none, account.Held)

		alone, err := shaper.NewGroup[string](scheduler.PerSecond(10))
		require.NoError(t, err)
		require.False(t, alone.HoldAccount(hour))
		held(none, alone.Of("a").Held)
	})
}

// A hold that was loaded from a saved state is told, too.
func TestHeldAfterALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shaper.MustNew(scheduler.PerSecond(10))
		s.HoldUntil(time.Now().Add(time.Minute))
		state, err := s.MarshalBinary()
		require.NoError(t, err)
		loaded := shaper.MustNew(scheduler.PerSecond(10))
		require.NoError(t, loaded.UnmarshalBinary(state))
		until, held := loaded.Held()
		require.True(t, held)
		require.True(t, until.Equal(time.Now().Add(time.Minute)), until)
	})
}

// DepartN is Depart, for those that know no Call.
func TestDepartN(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shaper.MustNew(scheduler.PerSecond(10), shaper.WithBurst(10), shaper.WithMaxInFlight(1))
		g := shaper.MustNewGroup[string](scheduler.PerSecond(10), shaper.WithBurst(10))
		require.NoError(t, s.CanSettle())
		require.NoError(t, g.Of("a").CanSettle())
		settle, err := s.DepartN(t.Context(), 10, true)
		require.NoError(t, err)
		require.EqualValues(t, 1, s.Stats().InFlight)
		s.Release()
		require.Equal(t, time.Second, s.DelayOf(shaper.Call{Cost: 10}))
		require.NoError(t, settle(4))
		require.ErrorIs(t, settle(4), shaper.ErrFinal)
		require.Equal(t, 400*time.Millisecond, s.DelayOf(shaper.Call{Cost: 10}))

		settle, err = g.Of("a").DepartN(t.Context(), 10, false)
		require.NoError(t, err)
		require.NoError(t, settle(0))
		require.Zero(t, g.DelayOf("a", shaper.Call{Cost: 10}))

		require.NoError(t, s.Close())
		_, err = s.DepartN(t.Context(), 1, false)
		require.ErrorIs(t, err, shaper.ErrClosed)

		own := shaper.MustNewFrom(nothing{})
		require.ErrorIs(t, own.CanSettle(), errors.ErrUnsupported)
	})
}

// nothing is a schedule that keeps no account.
type nothing struct{}

func (nothing) Next(t time.Time, _, _ int64) time.Time { return t }
func (nothing) Commit(_, _ time.Time, _ int64)         {}
func (nothing) MaxCost() int64                         { return 10 }
