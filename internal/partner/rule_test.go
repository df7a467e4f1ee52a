package partner

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What each rule lets through of a call every millisecond, from the rule's definition,
// at 10 per second from a full second on.
func TestRules(t *testing.T) {
	counts := map[Rule][2]int{ // in the first second, and in the first two
		TokenBucket:    {10 + 9, 10 + 19}, // all tokens, and one each 100 ms
		LeakyBucket:    {10 + 9, 10 + 19},
		FixedWindow:    {10, 20},
		SlidingLog:     {10, 20},
		SlidingCounter: {10, 10 + 9}, // 10·(1-p) + 9 + 1 is above 10 until the next second
		GCRA:           {10, 20},
		"":             {10, 20},
	}
	epoch := time.Unix(1_700_000_000, 0)
	require.Len(t, counts, len(Rules())+1)
	for _, rule := range append(Rules(), "") {
		m := Limit{Units: 10, Window: time.Second, By: rule}.meter(epoch)
		got := [2]int{}
		for ms := range 2000 {
			if m.admit(time.Duration(ms)*time.Millisecond, 1) == 0 {
				if ms < 1000 {
					got[0]++
				}
				got[1]++
			}
		}
		assert.Equal(t, counts[rule], got, rule)
	}

	for _, rule := range []Rule{TokenBucket, LeakyBucket, GCRA} {
		m := Limit{Units: 10, Window: time.Second, By: rule, Burst: 3}.meter(epoch)
		for range 3 {
			assert.Zero(t, m.admit(0, 1))
		}
		assert.Equal(t, 100*time.Millisecond, m.admit(0, 1), rule)
	}
}

// A fixed window follows the wall clock: it is full again at the full second, however
// little time has passed.
func TestFixedWindowFollowsTheWallClock(t *testing.T) {
	m := Limit{Units: 1, Window: time.Second, By: FixedWindow}.meter(time.Unix(1_700_000_000, 900_000_000))
	assert.Zero(t, m.admit(0, 1))
	assert.Equal(t, 100*time.Millisecond, m.admit(0, 1))
	assert.Zero(t, m.admit(100*time.Millisecond, 1))
}

// The wait that a rule states is exact, with and without slack, for calls of all sizes.
func TestRuleWaitsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limit{
			Units:  rapid.Int64Range(1, 7).Draw(t, "units"),
			Window: time.Duration(rapid.Int64Range(20, 400).Draw(t, "window")),
			By:     rapid.SampledFrom(Rules()).Draw(t, "rule"),
		}
		if l.By.hasBurst() {
			l.Burst = rapid.Int64Range(1, 5).Draw(t, "burst")
		}
		l.Slack = time.Duration(rapid.Int64Range(0, int64(l.Window)/l.Units-1).Draw(t, "slack"))
		require.NoError(t, l.validate())
		m := l.meter(time.Unix(1_700_000_000, 0))
		var now time.Duration
		for range 40 {
			now += time.Duration(rapid.Int64Range(0, 60).Draw(t, "pause"))
			n := rapid.Int64Range(1, min(l.largest(), 5)).Draw(t, "n")
			wait := m.admit(now, n)
			if wait == 0 {
				continue
			}
			require.Positive(t, wait)
			if wait > 1 {
				require.EqualValues(t, 1, m.admit(now+wait-1, n), "a refusal changes nothing")
			}
			now += wait
			require.Zero(t, m.admit(now, n))
		}
	})
}

// Slack forgives earliness once and charges it to the next call: a client that is always
// early is no faster for it.
func TestSlackOfARuleDoesNotAddUp(t *testing.T) {
	for _, rule := range Rules() {
		if rule == SlidingCounter {
			continue // refuses every other window at a limit of 1, with slack or without
		}
		m := Limit{Units: 1, Window: 100 * time.Millisecond, By: rule, Slack: 20 * time.Millisecond}.meter(time.Time{})
		calls := 0
		for now := time.Duration(0); now < time.Minute; now += time.Millisecond {
			if m.admit(now, 1) == 0 {
				calls++
			}
		}
		// At 0, 80, 180 and so on: 600 in the minute and not the 750 of a call each 80 ms.
		assert.Equal(t, 601, calls, rule)
	}
}

// A call that was read before the limit dropped below its units is refused.
func TestLimitDropsBelowACallInHand(t *testing.T) {
	for _, rule := range append(Rules(), "") {
		g := newGate(Endpoint{Limit: Limit{Units: 2, Window: time.Hour, By: rule}, Concurrency: 1}, NoHint)
		d := g.enter(0, "", 3)
		if rule == GCRA {
			assert.Nil(t, d, "which has no largest call")
			continue
		}
		if assert.NotNil(t, d, rule) {
			assert.Zero(t, d.wait, "no wait would help")
		}
		assert.EqualValues(t, 1, g.snapshot().Refused)
	}
}

// deadlined notes the deadline that a handler sets.
type deadlined struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (d *deadlined) SetWriteDeadline(t time.Time) error { d.deadline = t; return nil }

// A slow answer gets time to be written, however little the server meant to give it.
func TestLingerMovesTheDeadline(t *testing.T) {
	g := newGate(Endpoint{Limit: defaultSMS().Limit}, NoHint)
	w := &deadlined{ResponseRecorder: httptest.NewRecorder()}
	g.linger(t.Context(), w, time.Nanosecond)
	assert.Greater(t, time.Until(w.deadline), readTimeout)
}
