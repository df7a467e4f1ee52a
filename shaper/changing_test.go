package shaper_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// slots is a schedule that the test fills: unit by unit, at instants of its choice.
type slots struct {
	mu    sync.Mutex
	free  []time.Time
	guess time.Duration // how long it takes until more come
	asked int64         // the most units that it was asked for
	held  time.Time
	again func()
}

func (s *slots) Next(t time.Time, ahead, n int64) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = max(s.asked, ahead+n)
	if int(ahead+n) > len(s.free) {
		return time.Now().Add(s.guess)
	}
	if slot := s.free[ahead+n-1]; slot.After(t) {
		return slot
	}
	return t
}

func (s *slots) Commit(_, _ time.Time, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = s.free[n:]
}

func (s *slots) MaxCost() int64       { return 100 }
func (s *slots) Notify(again func())  { s.again = again }
func (s *slots) Hold(until time.Time) { s.held = until }

func (s *slots) add(at ...time.Time) {
	s.mu.Lock()
	s.free = append(s.free, at...)
	s.mu.Unlock()
	s.again()
}

// A line looks again when a schedule that others change says so, and not before.
func TestScheduleThatChangesByItself(t *testing.T) {
	for _, form := range []string{"alone", "beside others"} {
		t.Run(form, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &slots{guess: time.Hour}
				s, err := shaper.NewFrom(source)
				if form == "beside others" {
					s, err = shaper.New(scheduler.Unlimited, shaper.WithLimits(source))
				}
				require.NoError(t, err)
				r := newRecorder()
				for range 3 {
					r.wait(t.Context(), s)
				}
				soon, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				late := r.wait(soon, s)
				assert.ErrorIs(t, late.err, shaper.ErrDeadline)
				assert.EqualValues(t, 4, source.asked)

				r.until(10 * ms)
				source.add(r.start.Add(15*ms), r.start.Add(20*ms))
				r.until(50 * ms)
				assert.Equal(t, []time.Duration{15 * ms, 20 * ms}, r.left())
				source.add(r.start.Add(40 * ms))
				synctest.Wait()
				assert.Equal(t, []time.Duration{15 * ms, 20 * ms, 50 * ms}, r.left())

				until := time.Now().Add(time.Minute)
				s.HoldUntil(until)
				assert.Equal(t, until, source.held)
				conserved(t, s)
			})
		})
	}
}
