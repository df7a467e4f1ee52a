package shaper

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper/internal/precise"
)

func TestGrainKeepsReleasesApart(t *testing.T) {
	const grain, releases = 2 * time.Millisecond, 20
	fired := make(chan time.Duration, releases)
	var p *preciseAlarm
	p = newPreciseAlarm(grain, func() { fired <- time.Duration(p.fired.Load()) })
	last := time.Duration(-1)
	for range releases {
		p.set(nil, time.Microsecond)
		at := <-fired
		if last >= 0 {
			assert.GreaterOrEqual(t, at-last, grain)
		}
		last = at
	}
}

// The option takes effect where it can, and in no bubble: an alarm from outside would
// wake callers that live by another time.
func TestPreciseTimingStaysOutOfBubbles(t *testing.T) {
	kind := func() any {
		s, err := New(scheduler.PerSecond(1), WithPreciseTiming())
		require.NoError(t, err)
		return s.line.alarm
	}
	if precise.Available() {
		assert.IsType(t, &preciseAlarm{}, kind())
	} else {
		assert.IsType(t, &headTimer{}, kind())
	}
	synctest.Test(t, func(t *testing.T) { assert.IsType(t, &headTimer{}, kind()) })
}
