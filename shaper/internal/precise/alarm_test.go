package precise

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// In a bubble there is only the bubble's clock, and Alarms go by it.
func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.False(t, Available())
		start := time.Now()
		var fired []time.Duration
		var a *Alarm
		a = New(func() {
			fired = append(fired, time.Since(start))
			if len(fired) < 3 {
				a.Set(time.Millisecond)
			}
		})
		a.Set(time.Hour)
		a.Set(time.Second)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		require.Equal(t, []time.Duration{
			time.Second, time.Second + time.Millisecond, time.Second + 2*time.Millisecond,
		}, fired)

		a.Set(time.Second)
		a.Stop()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		require.Len(t, fired, 3)
		a.Set(-1)
		synctest.Wait()
		require.Len(t, fired, 4)
	})
}

func TestNew(t *testing.T) {
	c := make(chan time.Time, 1)
	start := time.Now()
	New(func() { c <- time.Now() }).Set(time.Millisecond)
	require.GreaterOrEqual(t, (<-c).Sub(start), time.Millisecond)
}

func TestAfter(t *testing.T) {
	const last = int64(math.MaxInt64)
	require.Equal(t, int64(12), after(10, 2))
	require.Equal(t, int64(10), after(10, -2))
	require.Equal(t, int64(10), after(10, math.MinInt64))
	require.Equal(t, last, after(0, math.MaxInt64))
	require.Equal(t, last, after(1, math.MaxInt64))
}
