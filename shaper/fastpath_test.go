package shaper_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// Callers that race without the lock, while others change the rate, hold the line, wait
// and give up, get no unit more than the schedule has, and each is counted.
func TestRacersShareOneSchedule(t *testing.T) {
	skipWithoutPreemption(t)
	const burst, perSecond = 3, 50_000
	s := newShaper(t, scheduler.PerSecond(perSecond), shaper.WithBurst(burst), shaper.WithTolerance(0))
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var left, refused, waited atomic.Int64
	var racers sync.WaitGroup
	for range 4 {
		racers.Go(func() {
			for ctx.Err() == nil {
				if s.Allow() {
					left.Add(1)
				} else {
					refused.Add(1)
				}
			}
		})
		racers.Go(func() {
			for ctx.Err() == nil {
				mine, giveUp := context.WithTimeout(context.Background(), 100*time.Microsecond)
				if s.Wait(mine) == nil {
					waited.Add(1)
				}
				giveUp()
			}
		})
	}
	racers.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			switch i % 4 {
			case 0:
				assert.NoError(t, s.SetRate(scheduler.PerSecond(perSecond-int64(i%7))))
			case 1:
				s.HoldUntil(time.Now().Add(10 * time.Microsecond))
			case 2:
				s.Resume()
			}
			conserved(t, s)
		}
	})
	racers.Wait()
	most := burst + int64(time.Since(began)/(time.Second/perSecond))
	assert.LessOrEqual(t, left.Load()+waited.Load(), most)
	assert.Positive(t, left.Load())
	assert.Equal(t, left.Load()+waited.Load(), s.Stats().Left)
	conserved(t, s)
}

// A schedule whose time is counted in fine fractions runs for long all the same.
func TestFineFractionsOutliveTheirWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(999_983))
		for range 30 {
			require.True(t, s.Allow())
			require.False(t, s.Allow())
			time.Sleep(1000) // T is 1000.017 ns
			require.False(t, s.Allow())
			time.Sleep(time.Nanosecond)
			require.True(t, s.Allow())
			time.Sleep(7 * time.Minute)
		}
		assert.EqualValues(t, 60, s.Stats().Left)
	})
}

// What makes a call wait, or turns it away, is asked for before the fast path that needs no
// lock, whichever came last.
func TestNoCallPassesAClosedGate(t *testing.T) {
	for name, shut := range map[string]func(*shaper.Shaper){
		"paused": (*shaper.Shaper).Pause,
		"held":   func(s *shaper.Shaper) { s.HoldUntil(time.Now().Add(time.Hour)) },
		"closed": func(s *shaper.Shaper) { _ = s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShaper(t, scheduler.Unlimited)
				require.True(t, s.Allow())
				shut(s)
				assert.False(t, s.Allow())
				assert.Zero(t, testing.AllocsPerRun(10, func() { s.Allow() }))
				conserved(t, s)
			})
		})
	}
}
