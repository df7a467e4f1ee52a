package shaper_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// On the real clock only lower bounds can be told: the k-th call leaves no sooner than k
// intervals after the start, while others give up, the line pauses and the rate changes
// to the same one.
func TestPreciseReleasesAreNeverEarly(t *testing.T) {
	skipWithoutPreemption(t)
	const perSecond, callers = 5000, 64
	for name, opts := range map[string][]shaper.Option{
		"precise":      {shaper.WithPreciseTiming()},
		"with a grain": {shaper.WithPreciseTiming(), shaper.WithGrain(time.Millisecond)},
		"timers":       nil,
	} {
		t.Run(name, func(t *testing.T) {
			s := newShaper(t, scheduler.PerSecond(perSecond), append(opts, shaper.WithTolerance(0))...)
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 200*ms)
			defer cancel()
			var mu sync.Mutex
			var left []time.Duration
			var all sync.WaitGroup
			for i := range callers {
				all.Go(func() {
					for n := i; ctx.Err() == nil; n++ {
						mine, giveUp := context.WithCancel(ctx)
						if n%5 == 0 {
							time.AfterFunc(3*ms, giveUp)
						}
						if s.Wait(mine) == nil {
							mu.Lock()
							left = append(left, time.Since(began))
							mu.Unlock()
						}
						giveUp()
					}
				})
			}
			all.Go(func() {
				for ctx.Err() == nil {
					s.Pause()
					s.Resume()
					assert.NoError(t, s.SetRate(scheduler.PerSecond(perSecond)))
					time.Sleep(5 * ms)
				}
			})
			all.Wait()
			require.NotEmpty(t, left)
			slices.Sort(left)
			for k, at := range left {
				require.GreaterOrEqual(t, at, time.Duration(k)*time.Second/perSecond)
			}
			assert.EqualValues(t, len(left), s.Stats().Left)
			assert.Zero(t, s.Stats().Waiting)
			conserved(t, s)
		})
	}
}

func TestPreciseLineCloses(t *testing.T) {
	s := newShaper(t, scheduler.PerHour(1), shaper.WithPreciseTiming())
	require.NoError(t, s.Wait(t.Context()))
	errs := make(chan error)
	for range 10 {
		go func() { errs <- s.Wait(t.Context()) }()
	}
	awaitWaiting(func() int64 { return s.Stats().Waiting }, 10)
	require.NoError(t, s.Close())
	for range 10 {
		assert.ErrorIs(t, <-errs, shaper.ErrClosed)
	}
}

func TestPreciseOptionsAreChecked(t *testing.T) {
	for want, opts := range map[string][]shaper.Option{
		"grain -1ns":                         {shaper.WithPreciseTiming(), shaper.WithGrain(-1)},
		"grain 1ms: needs WithPreciseTiming": {shaper.WithGrain(ms)},
	} {
		_, err := shaper.New(scheduler.PerSecond(1), opts...)
		assert.ErrorContains(t, err, want)
	}
	// A clock of the user's has its own alarms.
	mock := clock.NewMock()
	s := newShaper(t, scheduler.PerSecond(1), shaper.WithPreciseTiming(), shaper.WithClock(mock))
	require.True(t, s.Allow())
	left := make(chan error, 1)
	go func() { left <- s.Wait(t.Context()) }()
	awaitWaiting(func() int64 { return s.Stats().Waiting }, 1)
	mock.Add(time.Second)
	assert.NoError(t, <-left)
}
