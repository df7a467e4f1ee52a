package shaper_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

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
