package shaper_test

import (
	"fmt"
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
		start := time.Now()
		type departure struct {
			key string
			at  time.Duration
		}
		var left []departure
		send := func(key string) {
			go func() {
				if assert.NoError(t, senders.Wait(t.Context(), key)) {
					left = append(left, departure{key, time.Since(start)})
				}
			}()
			synctest.Wait()
		}
		for i := range 6 {
			send(fmt.Sprint("first ", i))
		}
		for range 4 {
			send("a")
		}
		for i := range 30 {
			send(fmt.Sprint("later ", i))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, left, 40)
		var ofA []time.Duration
		for i, d := range left {
			assert.Equal(t, time.Duration(i)*50*ms, d.at, d.key)
			if d.key == "a" {
				ofA = append(ofA, d.at)
			}
		}
		assert.Equal(t, []time.Duration{300 * ms, 800 * ms, 1300 * ms, 1800 * ms}, ofA)
		assert.Equal(t, 0, senders.Len())
	})
}
