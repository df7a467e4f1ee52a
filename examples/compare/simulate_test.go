package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	randomly "github.com/sluice-go/sluice/internal/trial"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var stated = limits{limit: 10, window: 5 * time.Second, burst: 10}

func simulate(t *testing.T, set settings, calls []arrival) *comparison {
	t.Helper()
	c, err := compare(set, calls)
	require.NoError(t, err)
	require.Len(t, c.trials, 16)
	return c
}

func (c *comparison) trial(t *testing.T, name, use string) trial {
	t.Helper()
	for _, tr := range c.trials {
		if tr.name == name && tr.use == use {
			return tr
		}
	}
	require.FailNow(t, "no such trial", "%s, %s", name, use)
	return trial{}
}

// admitted returns how many calls were admitted of those that came at one time.
func admitted(outcomes []outcome) map[time.Duration]int {
	counts := make(map[time.Duration]int)
	for _, o := range outcomes {
		if !o.refused {
			counts[o.at]++
		}
	}
	return counts
}

// The figures of the worked trace in the literature: 10, 2 and 1.
func TestTrace(t *testing.T) {
	want := map[time.Duration]int{0: 10, time.Second: 2, 2 * time.Second: 1}
	c := simulate(t, settings{limits: stated, patience: 5 * time.Second}, trace(stated, 0))
	assert.Equal(t, want, admitted(c.trial(t, "token bucket", meter).outcomes))
	assert.Equal(t, want, admitted(c.trial(t, "leaky bucket", meter).outcomes))

	// The queueing form releases one every 0.5 s, and refuses the call whose delay
	// equals capacity/rate: the eleventh.
	pacer := c.trial(t, "pacer", pace)
	assert.Equal(t, want, admitted(pacer.outcomes))
	for i, o := range pacer.outcomes[:10] {
		assert.Equal(t, time.Duration(i)*500*time.Millisecond, o.left)
	}
}

func TestBoundary(t *testing.T) {
	for _, l := range []limits{stated, {limit: 3, window: time.Second, burst: 3}, {limit: 7, window: 24 * time.Hour, burst: 2}, {limit: 200, window: time.Minute, burst: 1}} {
		c := simulate(t, settings{limits: l}, boundary(l, 0))
		for _, use := range []string{meter, pace} {
			fixed := c.trial(t, "fixed window", use)
			assert.Equal(t, 2*l.limit, fixed.worst, "%v %s", l, use)
			assert.Zero(t, fixed.wait)
			assert.Equal(t, "2.0x", fixed.excess(l.limit))
			assert.LessOrEqual(t, c.trial(t, "pacer", use).worst, l.limit)
		}
		assert.Equal(t, l.limit, c.trial(t, "sliding log", meter).worst)
	}
}

func TestOverload(t *testing.T) {
	calls := overload(stated, 0)
	assert.Len(t, calls, 60)
	c := simulate(t, settings{limits: stated}, calls)
	// One and a half times the rate for four windows takes six windows to leave.
	assert.Equal(t, 59*500*time.Millisecond, c.trial(t, "pacer", pace).last)
	assert.Equal(t, "9.8333s", short(c.trial(t, "pacer", pace).wait, stated.window))
}

// TestRandom holds all trials of random calls against what must be true of them, by
// rules that know nothing of the schedules.
func TestRandom(t *testing.T) {
	randomly.Run(t, 30, func(t *testing.T, random *rand.Rand) {
		l := limits{
			limit:  2 + random.Int64N(20),
			window: time.Duration(1+random.Int64N(3000)) * time.Millisecond,
			burst:  1 + random.Int64N(20),
		}
		maxCost := 1 + random.Int64N(3)
		calls := randomCalls(random, l, maxCost)
		patience := time.Duration(random.Int64N(int64(4*l.window))) + 1
		if random.IntN(3) == 0 {
			patience = 0
		}
		c := simulate(t, settings{limits: l, patience: patience}, calls)
		for _, tr := range c.trials {
			where := fmt.Sprintf("%+v, patience %v: %s, %s", l, patience, tr.name, tr.use)
			checkOutcomes(t, where, tr, calls, patience)
			checkMeasure(t, where, tr, l.window)
			checkLimit(t, where, tr, l, maxCost)
		}
	})
}

func randomCalls(random *rand.Rand, l limits, maxCost int64) []arrival {
	calls := make([]arrival, 80)
	var at time.Duration
	for i := range calls {
		if random.IntN(3) > 0 {
			at += time.Duration(random.Int64N(int64(2 * l.window / time.Duration(l.limit))))
		}
		if random.IntN(30) == 0 {
			at = at.Truncate(l.window) + l.window
		}
		calls[i] = arrival{at, 1 + random.Int64N(maxCost)}
	}
	return calls
}

func checkOutcomes(t *testing.T, where string, tr trial, calls []arrival, patience time.Duration) {
	t.Helper()
	require.Len(t, tr.outcomes, len(calls), where)
	require.Equal(t, len(calls), tr.passed+tr.refused, where)
	var tail time.Duration
	for i, o := range tr.outcomes {
		require.Equal(t, calls[i], o.arrival, where)
		if o.refused {
			continue
		}
		require.GreaterOrEqual(t, o.left, o.at, where)
		require.GreaterOrEqual(t, o.left, tail, "%s: out of order", where)
		tail = o.left
		switch {
		case tr.use == meter:
			require.Equal(t, o.at, o.left, where)
		case patience > 0:
			require.Less(t, o.left-o.at, patience, where)
		}
	}
	if tr.use == pace && patience == 0 && tr.name == "pacer" {
		require.Zero(t, tr.refused, where)
	}
}

// checkMeasure counts in the most naive way.
func checkMeasure(t *testing.T, where string, tr trial, window time.Duration) {
	t.Helper()
	var left []outcome
	for _, o := range tr.outcomes {
		if !o.refused {
			left = append(left, o)
		}
	}
	var worst, units int64
	gap := time.Duration(1<<63 - 1)
	for i, first := range left {
		units += first.cost
		var inside int64
		for _, o := range left {
			if o.left >= first.left && o.left < first.left+window {
				inside += o.cost
			}
		}
		worst = max(worst, inside)
		if i > 0 {
			gap = min(gap, first.left-left[i-1].left)
		}
	}
	require.Equal(t, worst, tr.worst, where)
	require.Equal(t, units, tr.units, where)
	if len(left) > 1 {
		require.Equal(t, gap, tr.gap, where)
	}
	if len(left) > 0 {
		require.Equal(t, left[len(left)-1].left, tr.last, where)
		require.True(t, slices.ContainsFunc(left, func(o outcome) bool { return o.left == tr.worstAt }), where)
	}
}

// checkLimit knows what each schedule promises.
func checkLimit(t *testing.T, where string, tr trial, l limits, maxCost int64) {
	t.Helper()
	switch tr.name {
	case "pacer":
		// Of a cost above the burst the first unit leaves on time and the others
		// early, but they are paid for afterwards.
		require.LessOrEqual(t, tr.worst, l.limit+maxCost-1, where)
		if maxCost == 1 && tr.passed > 1 {
			// Instants are rounded up to whole nanoseconds, the first one too.
			require.Greater(t, (tr.gap+1)*time.Duration(l.limit), l.window, where)
		}
	case "within":
		if maxCost == 1 {
			require.LessOrEqual(t, tr.worst, l.limit, where)
		}
	case "token bucket", "leaky bucket":
		require.LessOrEqual(t, tr.worst, l.limit+l.burst, where)
	case "fixed window", "sliding counter":
		require.LessOrEqual(t, tr.worst, 2*l.limit, where)
	case "sliding log":
		require.LessOrEqual(t, tr.worst, l.limit, where)
	case "all of two":
		require.LessOrEqual(t, tr.worst, l.limit, where)
		if maxCost == 1 && tr.passed > 1 {
			require.Greater(t, 2*(tr.gap+1)*time.Duration(l.limit), l.window, where)
		}
	default:
		require.Fail(t, "nothing is known of "+tr.name)
	}
}

// A call is refused for its patience only: with a nanosecond more it leaves.
func TestPatience(t *testing.T) {
	calls := together(nil, 0, 3)
	for patience, refused := range map[time.Duration]int{
		0:                        0,
		1:                        2,
		500 * time.Millisecond:   2,
		500*time.Millisecond + 1: 1,
		time.Second:              1,
		time.Second + 1:          0,
	} {
		c := simulate(t, settings{limits: stated, patience: patience}, calls)
		assert.Equal(t, refused, c.trial(t, "pacer", pace).refused, patience)
	}
}

// What can never leave is refused, also by a line that waits however long it takes.
func TestTooCostly(t *testing.T) {
	calls := []arrival{{0, 11}, {0, 10}, {maxSeconds * time.Second, maxCost}, {maxSeconds * time.Second, maxCost}}
	l := limits{limit: 10, window: maxWindow, burst: 10}
	c := simulate(t, settings{limits: l}, calls)
	for _, name := range []string{"token bucket", "leaky bucket", "fixed window", "sliding log", "sliding counter", "all of two"} {
		for _, use := range []string{meter, pace} {
			tr := c.trial(t, name, use)
			assert.Equal(t, 1, tr.passed, "%s, %s", name, use)
			assert.EqualValues(t, 10, tr.units, "%s, %s", name, use)
		}
	}
	// The pacer takes everything, but 100 000 years are too long.
	assert.Equal(t, 3, c.trial(t, "pacer", pace).passed)
}

// However long it takes is a century, which leaves room for times that are late
// already.
func TestCentury(t *testing.T) {
	l := limits{limit: 2, window: maxWindow, burst: 1}
	for owed, refused := range map[int64]int{190: 0, 210: 1} {
		calls := []arrival{{maxSeconds * time.Second, owed}, {maxSeconds * time.Second, 1}}
		tr := simulate(t, settings{limits: l}, calls).trial(t, "pacer", pace)
		assert.Equal(t, refused, tr.refused, owed)
	}
}

func TestExcess(t *testing.T) {
	for worst, want := range map[int64]string{
		0: "", 999: "", 1000: "", 1001: ">1.0x", 1049: ">1.0x", 1050: "1.1x", 1500: "1.5x", 2000: "2.0x", 123456: "123x",
	} {
		assert.Equal(t, want, measure{worst: worst}.excess(1000), worst)
	}
}

func TestDurations(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1234567: "1.2ms", 7 * time.Second: "7s", time.Minute: "1m", 10 * time.Minute: "10m", time.Hour: "1h",
		time.Hour + time.Second: "1h0m1s", 20*time.Hour + 30*time.Minute: "20h30m", 333333334: "333.3ms",
	} {
		assert.Equal(t, want, short(d, 5*time.Second))
	}
	assert.Equal(t, "24h0m3s", short(24*time.Hour+3*time.Second+400*time.Millisecond, 24*time.Hour))
}
