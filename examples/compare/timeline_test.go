package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	randomly "github.com/sluice-go/sluice/internal/trial"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRow(t *testing.T) {
	a := &axis{window: time.Second, perWindow: 2, perSlot: 1, first: 1, slots: 6}
	at := func(ms time.Duration, cost int64, refused bool) outcome {
		return outcome{arrival{ms * time.Millisecond, cost}, ms * time.Millisecond, refused}
	}
	outcomes := []outcome{
		at(500, 4, false), at(999, 5, false), at(999, 1, true), at(1000, 10, false),
		at(1500, 1, true), at(2500, 1, false), at(3000, 9, true), at(3499, 1, false),
	}
	assert.Equal(t, "9+x.11", row(a, outcomes, 1))
	assert.Equal(t, "55x.11", row(a, outcomes, 2), "rounded up")
	assert.Equal(t, " | | |", ruler(a))
}

func TestAxis(t *testing.T) {
	randomly.Run(t, 300, func(t *testing.T, random *rand.Rand) {
		window := minWindow + time.Duration(random.Int64N(1<<random.IntN(54)))
		first := time.Duration(random.Int64N(1 << random.IntN(62)))
		last := min(first+time.Duration(random.Int64N(1<<random.IntN(62))), maxSeconds*time.Second+century)
		c := &comparison{
			settings: settings{limits: limits{limit: 10, window: window, burst: 1}},
			calls:    []arrival{{min(first, last), 1}, {last, 1}},
		}
		first = c.calls[0].at
		a := newAxis(c, columns)
		where := fmt.Sprintf("window %v, from %v to %v: %+v", window, first, last, a)
		require.LessOrEqual(t, a.slots, columns, where)
		require.GreaterOrEqual(t, a.slot(first), 0, where)
		require.Equal(t, a.slots-1, a.slot(last), where)

		// A boundary begins a slot: an instant before it is in another one.
		boundary := last.Truncate(window)
		if a.perSlot == 1 && boundary > first {
			require.True(t, a.isBoundary(a.slot(boundary)), where)
			require.Less(t, a.slot(boundary-1), a.slot(boundary), where)
		}
		// Where there is room for more than one tick in a window, it begins with one.
		ticks := a.ticks(func(string) int { return 7 })
		for slot := range a.slots {
			if a.isBoundary(slot) && a.perWindow > 7 {
				require.Contains(t, ticks, slot, where)
			}
		}
		text := labels(&a)
		require.Less(t, len(text), columns+40, where)
		require.NotContains(t, text, "-", where)
	})
}

func TestScale(t *testing.T) {
	for _, test := range []struct{ limit, perWindow, perSlot, want int64 }{
		{10, 40, 1, 1}, {10, 1, 1, 3}, {20, 20, 1, 1}, {21, 40, 1, 2}, {1000, 40, 1, 50}, {1000, 1, 1, 223}, {1000, 1, 10, 2223},
	} {
		a := &axis{perWindow: test.perWindow, perSlot: test.perSlot}
		assert.Equal(t, test.want, a.scale(test.limit), "%+v", test)
	}
}

func TestLabelsStandBelowTheirSlots(t *testing.T) {
	c := &comparison{settings: settings{limits: stated}, calls: []arrival{{4750 * time.Millisecond, 1}, {12 * time.Second, 1}}}
	a := newAxis(c, columns)
	marks, text := ruler(&a), labels(&a)
	assert.Equal(t, strings.Index(marks, "|"), strings.Index(text, "5s"))
	assert.Equal(t, strings.LastIndex(marks, "|"), strings.Index(text, "10s"))
	assert.True(t, strings.HasPrefix(text, "4s "), "a fifth of a window before it begins")
}

func TestMulDiv(t *testing.T) {
	const most int64 = 1<<63 - 1
	assert.EqualValues(t, 6, mulDiv(4, 3, 2))
	assert.EqualValues(t, most, mulDiv(most, most, most))
	assert.EqualValues(t, most-1, mulDiv(most, most-1, most))
	assert.EqualValues(t, 3, mulDiv(7, 1, 2))
	assert.EqualValues(t, -3, mulDiv(-7, 1, 2))
}
