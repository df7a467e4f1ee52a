package scheduler_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
)

func newLedger(t *testing.T, most int, timeout time.Duration) *scheduler.Ledger {
	t.Helper()
	l, err := scheduler.NewLedger(most, timeout)
	require.NoError(t, err)
	return l
}

func TestLedgerBounds(t *testing.T) {
	for _, err := range []error{
		func() error { _, err := scheduler.NewLedger(0, time.Second); return err }(),
		func() error { _, err := scheduler.NewLedger(1, 0); return err }(),
	} {
		assert.ErrorContains(t, err, "must be")
	}
	g := newGCRA(t, scheduler.PerSecond(1), 10)
	l := newLedger(t, 2, time.Minute)
	open := func(now time.Time) uint64 {
		id := l.Open(now, 3, g)
		g.CommitUnsettled(id, now, now, 3)
		return id
	}
	a, b, c := open(origin), open(origin), open(origin)
	assert.Equal(t, 2, l.Unsettled())
	assert.Equal(t, 2, g.Unsettled())
	assert.ErrorIs(t, l.Settle(origin, a, 0), scheduler.ErrFinal, "the oldest has become final")
	require.NoError(t, l.Settle(origin, c, 1))
	assert.Equal(t, origin.Add(7*time.Second), g.TAT())
	assert.ErrorIs(t, l.Settle(origin, c, 1), scheduler.ErrFinal, "it is settled")
	assert.Error(t, l.Settle(origin, b, -1))
	assert.ErrorIs(t, l.Settle(origin.Add(time.Minute), b, 0), scheduler.ErrFinal, "its time is over")
	assert.Equal(t, origin.Add(7*time.Second), g.TAT())
	assert.Zero(t, g.Unsettled())
	d := open(origin.Add(time.Minute))
	require.NoError(t, l.Settle(origin.Add(2*time.Minute-1), d, 5), "1 ns before its time is over")
	assert.Equal(t, origin.Add(time.Minute+5*time.Second), g.TAT())
}

// A limit that cannot settle is charged for good; without any other All cannot either.
func TestCanSettle(t *testing.T) {
	tokens, calls := newGCRA(t, scheduler.PerSecond(1), 10), newGCRA(t, scheduler.PerSecond(1), 10)
	perCall := scheduler.PerCall(calls)
	assert.True(t, scheduler.CanSettle(tokens))
	assert.False(t, scheduler.CanSettle(perCall))
	assert.False(t, scheduler.CanSettle(scheduler.All(perCall)))
	assert.False(t, scheduler.CanSettle(stateless{tokens}))
	both := scheduler.All(perCall, tokens)
	require.True(t, scheduler.CanSettle(both))
	s := both.(scheduler.Settler)
	s.CommitUnsettled(1, origin, origin, 6)
	assert.Equal(t, origin.Add(6*time.Second), tokens.TAT())
	require.NoError(t, s.Settle(1, 2))
	assert.Equal(t, origin.Add(2*time.Second), tokens.TAT())
	assert.Equal(t, origin.Add(time.Second), calls.TAT(), "a call is a call")
	assert.ErrorIs(t, s.Settle(1, 2), scheduler.ErrFinal)
}

// A saved state holds nothing that is unsettled.
func TestStateMakesFinal(t *testing.T) {
	for name, s := range each(t) {
		settler, ok := s.(scheduler.Settler)
		if !ok {
			continue
		}
		now := s.Next(origin.Add(time.Hour), 0, 1)
		settler.CommitUnsettled(1, now, now, 1)
		data, err := s.MarshalBinary()
		require.NoError(t, err)
		require.NoError(t, s.UnmarshalBinary(data))
		assert.ErrorIs(t, settler.Settle(1, 0), scheduler.ErrFinal, name)
		assert.Zero(t, settler.Unsettled(), name)
		again, err := s.MarshalBinary()
		require.NoError(t, err)
		assert.Equal(t, data, again, name)
	}
}

// No cost that becomes known makes a schedule panic, or an instant wrap around.
func TestSettleExtremes(t *testing.T) {
	extremes := []int64{0, 1, 1 << 31, 1 << 62, math.MaxInt64}
	for name, s := range each(t) {
		settler, ok := s.(scheduler.Settler)
		if !ok {
			continue
		}
		id, now := uint64(0), origin.Add(time.Hour)
		for _, n := range extremes {
			for _, actual := range extremes {
				settler.CommitUnsettled(id+1, now, now, n)
				settler.CommitUnsettled(id+2, now, now, n)
				for _, id := range []uint64{id + 1, id + 2} {
					if err := settler.Settle(id, actual); err != nil {
						assert.ErrorIs(t, err, scheduler.ErrFinal, name)
					}
					assert.False(t, s.Next(now, 0, 1).Before(now), "%s: %d became %d", name, n, actual)
				}
				id += 2
			}
		}
		assert.Zero(t, settler.Unsettled(), name)
	}
}

// What is unlimited owes nothing, whatever a call turns out to have cost.
func TestSettleThroughUnlimited(t *testing.T) {
	type both interface {
		scheduler.Settler
		scheduler.RateSetter
		scheduler.Scheduler
	}
	for name, s := range map[string]both{
		"GCRA":        newGCRA(t, scheduler.PerSecond(1), 10),
		"TokenBucket": newTokenBucket(t, scheduler.PerSecond(1), 10),
		"LeakyBucket": newLeakyBucket(t, scheduler.PerSecond(1), 10),
	} {
		s.CommitUnsettled(1, origin, origin, 5)
		s.CommitUnsettled(2, origin, origin, 5)
		require.NoError(t, s.SetRate(origin, scheduler.Unlimited))
		require.NoError(t, s.Settle(1, 50))
		assert.Equal(t, origin, s.Next(origin, 0, 10), name)
		s.CommitUnsettled(3, origin, origin, 5)
		require.NoError(t, s.SetRate(origin, scheduler.PerSecond(1)))
		s.Commit(origin, origin, 10)
		require.NoError(t, s.Settle(2, 50))
		require.NoError(t, s.Settle(3, 50))
		assert.Equal(t, origin.Add(time.Second), s.Next(origin, 0, 1), name)
	}
}
