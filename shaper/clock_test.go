package shaper_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// mockRecorder submits calls that live by a mock. The bubble makes it certain that
// each call waits before the mock moves on; the mock itself sleeps in it.
type mockRecorder struct {
	mock *clock.Mock
	mu   sync.Mutex
	left []time.Duration
}

func (r *mockRecorder) wait(ctx context.Context, s *shaper.Shaper) {
	go func() {
		if s.Wait(ctx) == nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.left = append(r.left, r.mock.Since(time.Unix(0, 0)))
		}
	}()
	synctest.Wait()
}

// departures returns when calls left, once all has happened that is due.
func (r *mockRecorder) departures() []time.Duration {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.left)
}

func TestMockClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &mockRecorder{mock: clock.NewMock()}
		s := newShaper(t, scheduler.PerSecond(10), shaper.WithClock(r.mock))
		for range 6 {
			r.wait(t.Context(), s)
		}
		ctx, cancel := context.WithCancel(t.Context())
		r.wait(ctx, s)
		assert.Equal(t, 700*ms, s.Delay())
		r.mock.Add(99 * ms)
		assert.Equal(t, steps(0, 0, 1), r.departures())
		r.mock.Add(ms)
		assert.Equal(t, steps(0, 100*ms, 2), r.departures())
		r.mock.Add(200 * ms)
		assert.Equal(t, steps(0, 100*ms, 4), r.departures())
		cancel()
		s.HoldUntil(r.mock.Now().Add(10 * time.Second))
		r.mock.Add(20 * time.Second)
		assert.Equal(t, []time.Duration{0, 100 * ms, 200 * ms, 300 * ms, 10300 * ms, 10400 * ms}, r.departures())
		assert.Zero(t, s.Delay())
	})
}

// Deadlines are read on the mock: a real one lies decades after its time.
func TestMockClockDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mock := clock.NewMock()
		s := newShaper(t, scheduler.PerSecond(1), shaper.WithClock(mock))
		assert.True(t, s.Allow())
		ctx, cancel := mock.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, s.Wait(ctx), shaper.ErrDeadline)
		ctx, cancel = mock.WithTimeout(t.Context(), time.Second+1)
		defer cancel()
		r := &mockRecorder{mock: mock}
		r.wait(ctx, s)
		mock.Add(time.Second)
		assert.Equal(t, []time.Duration{time.Second}, r.departures())
	})
}

// A clock that is set back lets no time pass: no call leaves early for it, and
// none is locked out for as long as the step.
func TestClockSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mock := clock.NewMock()
		mock.Set(time.Unix(1000, 0))
		s := newShaper(t, scheduler.PerSecond(1), shaper.WithClock(mock))
		assert.True(t, s.Allow())
		mock.Add(500 * ms)
		assert.False(t, s.Allow())
		mock.Set(time.Unix(10, 0))
		assert.False(t, s.Allow())
		assert.Equal(t, 500*ms, s.Delay())
		mock.Add(499 * ms)
		assert.False(t, s.Allow())
		mock.Add(ms)
		assert.True(t, s.Allow())
	})
}

// A clock that jumps ahead opens the gate for no more than the burst.
func TestClockJumpsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mock := clock.NewMock()
		s := newShaper(t, scheduler.PerSecond(10), shaper.WithClock(mock), shaper.WithBurst(2))
		mock.Add(1000 * time.Hour)
		assert.True(t, s.Allow())
		assert.True(t, s.Allow())
		assert.False(t, s.Allow())
	})
}
