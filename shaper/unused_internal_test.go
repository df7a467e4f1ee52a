package shaper

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
)

// A call that leaves without the lock is counted a moment after it has moved TAT. A look in
// between takes what it used for unused, and the next one does not take that back.
func TestUnusedUnitsMeetACallThatIsNotCountedYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := MustNew(scheduler.PerSecond(1))
		time.Sleep(10 * time.Second)
		w := s.line.fast.word.Load()
		after, ok := w.ticks.Leave(w.tat.Load(), s.line.time.since()-w.origin, 1)
		require.True(t, ok)
		w.tat.Store(after)
		early := s.Stats().UnusedUnits
		s.line.fast.left.Add(1)
		assert.GreaterOrEqual(t, s.Stats().UnusedUnits, early)
		time.Sleep(10 * time.Second)
		assert.EqualValues(t, 19, s.Stats().UnusedUnits, "and it is right in the end")
	})
}
