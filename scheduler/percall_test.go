package scheduler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/schedulertest"
)

func TestPerCallConformance(t *testing.T) {
	calls := func(d definition) definition {
		return func(left []schedulertest.Departure, at time.Time, n int64) bool {
			each := make([]schedulertest.Departure, len(left))
			for i, l := range left {
				each[i] = schedulertest.Departure{At: l.At, N: 1}
			}
			return d(each, at, 1)
		}
	}
	for name, c := range map[string]schedulertest.Config{
		"GCRA": {
			New:      func() scheduler.Scheduler { return scheduler.PerCall(newGCRA(t, scheduler.PerSecond(10), 3)) },
			Conforms: calls(bucket(3, 100*time.Millisecond)),
		},
		"SlidingLog": {
			New:      func() scheduler.Scheduler { return scheduler.PerCall(newSlidingLog(t, 10, time.Second)) },
			Conforms: calls(anyWindow(10, time.Second)),
		},
		"All": {
			New: func() scheduler.Scheduler {
				return scheduler.All(newGCRA(t, scheduler.PerSecond(30), 9), scheduler.PerCall(newGCRA(t, scheduler.PerSecond(10), 2)))
			},
		},
	} {
		c.Step = 100 * time.Millisecond
		t.Run(name, func(t *testing.T) { schedulertest.Run(t, c) })
	}
}

func TestPerCallCountsCalls(t *testing.T) {
	inner := newGCRA(t, scheduler.PerMinute(60), 2)
	s := scheduler.PerCall(inner)
	s.Commit(origin, origin, 5_000)
	s.Commit(origin, origin, 1)
	assert.Equal(t, origin.Add(time.Second), s.Next(origin, 0, 9_000))
	assert.Equal(t, origin.Add(2*time.Second), s.Next(origin, 700, 1), "it may be one call of 700 units")
	s.Commit(origin, origin, 0)
	assert.Equal(t, origin.Add(3*time.Second), inner.TAT(), "one that costs nothing is a call")
	_, rated := s.(scheduler.Rated)
	assert.False(t, rated)
	assert.PanicsWithValue(t, "scheduler: PerCall: nil Scheduler", func() { scheduler.PerCall(nil) })
	assert.Zero(t, scheduler.PerCall(new(scheduler.GCRA)).MaxCost())
	_, err := scheduler.PerCall(stateless{inner}).(interface{ MarshalBinary() ([]byte, error) }).MarshalBinary()
	require.ErrorContains(t, err, "stateless")
}

// What a shared schedule has to know and tell goes through.
func TestPerCallOfASharedSchedule(t *testing.T) {
	s := &sharedLimit{Scheduler: newGCRA(t, scheduler.PerSecond(1), 1)}
	c := scheduler.PerCall(s)
	c.(scheduler.Notifier).Notify(func() {})
	c.(scheduler.Holder).Hold(origin)
	c.(scheduler.Demander).Demand(origin, 900, 300, time.Time{})
	assert.Equal(t, [4]int64{1, 1, 3, 1}, [4]int64{s.notified, s.held, s.units, s.cost})
	c.(scheduler.Demander).Demand(origin, 0, 0, time.Time{})
	assert.Zero(t, s.units)
	_, changing := scheduler.PerCall(newGCRA(t, scheduler.PerSecond(1), 1)).(scheduler.Notifier)
	assert.False(t, changing)
}

type sharedLimit struct {
	scheduler.Scheduler
	notified, held, units, cost int64
}

func (s *sharedLimit) Notify(func())  { s.notified++ }
func (s *sharedLimit) Hold(time.Time) { s.held++ }
func (s *sharedLimit) Demand(_ time.Time, units, cost int64, _ time.Time) {
	s.units, s.cost = units, cost
}
