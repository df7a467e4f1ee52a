package shaper_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// In package variables there is no place for an error.
var (
	mustPace   = shaper.MustNew(scheduler.PerSecond(10), shaper.WithLimits(scheduler.Must(scheduler.NewFixedWindow(3, time.Hour))))
	mustFrom   = shaper.MustNewFrom(scheduler.Must(scheduler.NewSlidingLog(3, time.Hour)))
	mustGroup  = shaper.MustNewGroup[int](scheduler.PerSecond(10))
	constantly = shaper.MustNew(scheduler.Must(scheduler.ParseRate("10/s")))
)

func TestMust(t *testing.T) {
	assert.True(t, mustPace.Allow())
	assert.True(t, mustFrom.Allow())
	assert.True(t, mustGroup.Allow(7))
	assert.True(t, constantly.Allow())

	const zero = "scheduler: rate 0/0s: units must be at least 1 (to stop traffic, pause it)"
	assert.PanicsWithError(t, "shaper: "+zero, func() { shaper.MustNew(scheduler.Rate{}) })
	assert.PanicsWithError(t, "shaper: schedule nil: must be a Scheduler", func() { shaper.MustNewFrom(nil) })
	assert.PanicsWithError(t, "shaper: "+zero, func() { shaper.MustNewGroup[string](scheduler.Rate{}) })
	assert.PanicsWithError(t, "scheduler: burst 0: must be at least 1", func() { scheduler.Must(scheduler.NewGCRA(scheduler.PerSecond(1), 0)) })
}
