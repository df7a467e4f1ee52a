package shaper_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

func TestShutdownDrainsTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10))
		r := newRecorder()
		for range 4 {
			r.wait(t.Context(), s)
		}
		ended := make([]*submitted, 2) // two at once are fine
		for i := range ended {
			ended[i] = r.submit(func() error { return s.Shutdown(t.Context()) })
		}
		late := r.wait(t.Context(), s)
		assert.False(t, s.Allow())
		pass(time.Minute)
		assert.ErrorIs(t, late.err, shaper.ErrClosed)
		assert.Zero(t, late.at)
		for _, e := range ended {
			assert.NoError(t, e.err)
			assert.Equal(t, 300*ms, e.at)
		}
		assert.NoError(t, s.Shutdown(t.Context()))
		assert.Equal(t, steps(0, 100*ms, 4), r.left()[:4])
	})
}

func TestShutdownWaitsForAPausedLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10))
		s.Pause()
		r := newRecorder()
		r.wait(t.Context(), s)
		ended := r.submit(func() error { return s.Shutdown(t.Context()) })
		s.HoldUntil(time.Now().Add(ms))
		pass(time.Minute)
		assert.False(t, ended.ended)
		s.Resume()
		synctest.Wait()
		assert.NoError(t, ended.err)
		assert.Equal(t, time.Minute, ended.at)
	})
}

func TestShutdownEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10))
		r := newRecorder()
		for range 4 {
			r.wait(t.Context(), s)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 150*ms)
		defer cancel()
		assert.Equal(t, context.DeadlineExceeded, s.Shutdown(ctx))
		assert.EqualValues(t, 2, s.Stats().Waiting, "the line goes on")
		last := r.submit(func() error { return s.Shutdown(t.Context()) })
		require.NoError(t, s.Close())
		synctest.Wait()
		assert.NoError(t, last.err)
		assert.ErrorIs(t, r.calls[3].err, shaper.ErrClosed)
		assert.Equal(t, 150*ms, r.calls[3].at)
		conserved(t, s)
	})
}

func TestCloseRefusesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(1))
		r := newRecorder()
		for range 10 {
			r.wait(t.Context(), s)
		}
		require.NoError(t, s.Close())
		require.NoError(t, s.Close())
		synctest.Wait()
		for _, c := range r.calls[1:] {
			assert.ErrorIs(t, c.err, shaper.ErrClosed)
			assert.Zero(t, c.at)
		}
		assert.ErrorIs(t, s.Wait(t.Context()), shaper.ErrClosed)
		assert.NoError(t, s.Shutdown(t.Context()))
		conserved(t, s)
	})
}
