package partner

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The tally agrees with one that looks at every closed window and every gap.
func TestTallyAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var (
			now   time.Duration
			calls []arrival
			score = tally{window: time.Duration(rapid.Int64Range(1, 40).Draw(t, "window"))}
		)
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			now += time.Duration(rapid.Int64Range(0, 15).Draw(t, "pause"))
			n := rapid.Int64Range(1, 5).Draw(t, "n")
			score.add(now, n)
			calls = append(calls, arrival{now, n})
		}

		var worst, units int64
		gap := time.Duration(0)
		for i, from := range calls {
			var sum int64
			for _, a := range calls {
				if a.at >= from.at && a.at <= from.at+score.window {
					sum += a.units
				}
			}
			worst = max(worst, sum)
			units += from.units
			if i == 1 || i > 1 && from.at-calls[i-1].at < gap {
				gap = from.at - calls[i-1].at
			}
		}
		require.Equal(t, worst, score.worst)
		require.Equal(t, gap, score.gap)
		require.Equal(t, units, score.units)
		require.EqualValues(t, len(calls), score.calls)
	})
}
