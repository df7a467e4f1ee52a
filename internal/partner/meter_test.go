package partner

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Both meters decide as an oracle does that keeps every call and looks at all of
// them, and the wait that they state is exact.
func TestMeterAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limit{
			Units:  rapid.Int64Range(1, 7).Draw(t, "units"),
			Window: time.Duration(rapid.Int64Range(1, 40).Draw(t, "window")),
			Even:   rapid.Bool().Draw(t, "even"),
		}
		apart := l.Window
		if l.Even {
			apart = l.spacing(1)
		}
		l.Slack = time.Duration(rapid.Int64Range(0, int64(apart-1)).Draw(t, "slack"))
		require.NoError(t, l.validate())

		var (
			now      time.Duration
			accepted []arrival
			m        = l.meter(time.Time{})
		)
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			now += time.Duration(rapid.Int64Range(0, 15).Draw(t, "pause"))
			n := rapid.Int64Range(1, min(l.largest(), 9)).Draw(t, "n")

			wait := m.admit(now, n)
			if fits(l, accepted, arrival{now, n}) {
				require.Zerof(t, wait, "%d units at %d after %v", n, now, accepted)
				accepted = append(accepted, arrival{now, n})
				continue
			}
			require.Positivef(t, wait, "%d units at %d after %v", n, now, accepted)
			require.Truef(t, fits(l, accepted, arrival{now + wait, n}), "%d units after the wait of %d", n, wait)
			require.Falsef(t, fits(l, accepted, arrival{now + wait - 1, n}), "%d units before the wait of %d", n, wait)
		}
	})
}

// fits is the oracle: may the call follow the accepted ones?
func fits(l Limit, accepted []arrival, a arrival) bool {
	if l.Even {
		if len(accepted) == 0 {
			return true
		}
		// (now - last + slack) · units >= n · window
		last := accepted[len(accepted)-1]
		had := new(big.Int).Mul(big.NewInt(int64(a.at-last.at+l.Slack)), big.NewInt(l.Units))
		due := new(big.Int).Mul(big.NewInt(last.units), big.NewInt(int64(l.Window)))
		return had.Cmp(due) >= 0
	}
	// A fullest window can be moved until it begins with a call.
	all := append(accepted[:len(accepted):len(accepted)], a)
	for _, from := range all {
		var sum int64
		for _, b := range all {
			if b.at >= from.at && b.at < from.at+l.Window-l.Slack {
				sum += b.units
			}
		}
		if sum > l.Units {
			return false
		}
	}
	return true
}

func TestSpacingIsExact(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, tt := range []struct {
		units  int64
		window time.Duration
		n      int64
		want   time.Duration
	}{
		{10, time.Second, 1, 100 * time.Millisecond},
		{3, time.Second, 1, 333_333_334},
		{3, time.Second, 2, 666_666_667},
		{3, time.Second, 3, time.Second},
		{math.MaxInt64, 1, 1, 1},
		{1, year, 100, 100 * year},
		{1, year, 1000, math.MaxInt64},                   // 1000 years are beyond a Duration
		{1, math.MaxInt64, math.MaxInt64, math.MaxInt64}, // and this beyond 64 bits
		{math.MaxInt64, math.MaxInt64, 1000, 1000},       // not this
		{2, math.MaxInt64, 2, math.MaxInt64},
		{2, math.MaxInt64, 1, math.MaxInt64/2 + 1},
		{math.MaxInt64 - 1, math.MaxInt64, 1, 2},
		{1, math.MaxInt64 / 2, 2, math.MaxInt64 - 1},
		{1, math.MaxInt64/2 + 1, 2, math.MaxInt64},
	} {
		got := Limit{Units: tt.units, Window: tt.window}.spacing(tt.n)
		assert.Equalf(t, tt.want, got, "%d units at %d per %d", tt.n, tt.units, tt.window)
	}
}

// Limits at the end of the range neither wrap around nor lose a call.
func TestMeterAtTheEndOfTheRange(t *testing.T) {
	l := Limit{Units: math.MaxInt64, Window: math.MaxInt64}
	m := l.meter(time.Time{})
	assert.Zero(t, m.admit(math.MaxInt64-1, math.MaxInt64))
	assert.Equal(t, time.Duration(math.MaxInt64-1), m.admit(math.MaxInt64, math.MaxInt64))

	l = Limit{Units: 1, Window: math.MaxInt64, Even: true}
	m = l.meter(time.Time{})
	assert.Zero(t, m.admit(math.MaxInt64-1, math.MaxInt64))
	assert.Equal(t, time.Duration(math.MaxInt64-1), m.admit(math.MaxInt64, math.MaxInt64))
}

// An hour of calls must not stay in memory.
func TestLogIsPruned(t *testing.T) {
	m := &logMeter{units: 100, span: time.Second}
	score := tally{window: time.Second}
	for i := range 3600 * 10 {
		now := time.Duration(i) * 100 * time.Millisecond
		wait := m.admit(now, 1)
		score.add(now, 1)
		if wait > 0 || len(m.log.log) > 10 || cap(m.log.log) > 64 || len(score.log.log) > 11 || cap(score.log.log) > 64 {
			t.Fatalf("call %d: wait %v, the logs hold %d and %d calls", i, wait, len(m.log.log), len(score.log.log))
		}
	}
	assert.EqualValues(t, 11, score.worst)
}
