package shaper_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// Calls without a goroutine leave as those of Wait do, in one line with them.
func TestEnqueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10))
		r := newRecorder()
		for i := range 6 {
			if i%2 == 0 {
				r.wait(t.Context(), s)
			} else {
				r.submit(func() error { return enqueued(s, shaper.Call{}) })
			}
		}
		pass(time.Second)
		assert.Equal(t, steps(0, 100*ms, 6), r.left())
	})
}

// enqueued is the answer of a call that is enqueued.
func enqueued(s *shaper.Shaper, c shaper.Call) error {
	answer := make(chan error, 1)
	if _, err := s.Enqueue(c, func(err error) { answer <- err }); err != nil {
		return err
	}
	return <-answer
}

// A cancelled call has no answer, and one that has its answer cannot be cancelled.
func TestEnqueueCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10))
		answers := 0
		done := func(error) { answers++ }
		first, err := s.Enqueue(shaper.Call{}, done)
		require.NoError(t, err)
		assert.False(t, first(), "it has left")
		second, err := s.Enqueue(shaper.Call{}, done)
		require.NoError(t, err)
		third, err := s.Enqueue(shaper.Call{}, done)
		require.NoError(t, err)
		assert.True(t, second())
		assert.False(t, second())
		time.Sleep(100 * ms)
		synctest.Wait()
		assert.Equal(t, 2, answers)
		assert.False(t, third())
		st := s.Stats()
		assert.Equal(t, [...]int64{3, 2, 1, 0}, [...]int64{st.Submitted, st.Left, st.Cancelled, st.Waiting})
	})
}

// A deadline that cannot be met is told at once, and one that comes while the call waits is
// told then.
func TestEnqueueDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10))
		start := time.Now()
		_, err := s.Enqueue(shaper.Call{Deadline: start}, func(error) { t.Error("it was refused") })
		require.ErrorIs(t, err, shaper.ErrDeadline)
		require.True(t, s.Allow())
		_, err = s.Enqueue(shaper.Call{Deadline: start.Add(100 * ms)}, func(error) { t.Error("it was refused") })
		require.ErrorIs(t, err, shaper.ErrDeadline)
		s.Pause()
		var told []time.Duration
		_, err = s.Enqueue(shaper.Call{Deadline: start.Add(time.Second)}, func(err error) {
			assert.ErrorIs(t, err, shaper.ErrDeadline)
			told = append(told, time.Since(start))
		})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, []time.Duration{time.Second}, told)
	})
}

// An answer may ask for more without end, and one that panics costs no other its answer.
func TestAnswersCallBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.Unlimited)
		n := 0
		var again func(error)
		again = func(error) {
			if n++; n < 100_000 {
				_, err := s.Enqueue(shaper.Call{}, again)
				require.NoError(t, err)
			}
		}
		_, err := s.Enqueue(shaper.Call{}, again)
		require.NoError(t, err)
		assert.Equal(t, 100_000, n)
	})
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(1))
		s.Pause()
		told := 0
		for i := range 3 {
			_, err := s.Enqueue(shaper.Call{}, func(err error) {
				assert.ErrorIs(t, err, shaper.ErrClosed)
				told++
				if i == 0 {
					panic(errors.New("mine"))
				}
			})
			require.NoError(t, err)
		}
		assert.Panics(t, func() { _ = s.Close() })
		synctest.Wait()
		assert.Equal(t, 3, told)
		_, err := s.Enqueue(shaper.Call{}, func(error) {})
		assert.ErrorIs(t, err, shaper.ErrClosed)
	})
}

// Keys of a Group are forgotten when their calls without a goroutine have left.
func TestGroupEnqueue(t *testing.T) {
	for _, under := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var opts []shaper.Option
			if under {
				opts = append(opts, shaper.Under(newShaper(t, scheduler.PerSecond(1000))))
			}
			g, err := shaper.NewGroup[string](scheduler.PerSecond(10), opts...)
			require.NoError(t, err)
			start := time.Now()
			var left []time.Duration
			for range 3 {
				_, err := g.Enqueue("a", shaper.Call{}, func(err error) {
					assert.NoError(t, err)
					left = append(left, time.Since(start))
				})
				require.NoError(t, err)
			}
			cancel, err := g.Enqueue("b", shaper.Call{}, func(error) {})
			require.NoError(t, err)
			// Under an account it waits for that and is cancelled; alone it has left.
			assert.Equal(t, under, cancel())
			if under {
				assert.Equal(t, 1, g.Len())
			}
			time.Sleep(400 * ms)
			synctest.Wait()
			assert.Equal(t, []time.Duration{0, 100 * ms, 200 * ms}, left)
			assert.Equal(t, 0, g.Len())
		})
	}
}

// A cancel function that comes when its call is over takes no other call out of the line, though
// the memory of the one serves the other.
func TestCancelThatComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10))
		require.True(t, s.Allow())
		var old []func() bool
		left := 0
		for range 20 {
			for range 10 {
				cancel, err := s.Enqueue(shaper.Call{}, func(error) { left++ })
				require.NoError(t, err)
				old = append(old, cancel)
			}
			require.True(t, old[len(old)-1]())
			pass(400 * ms)
			for _, cancel := range old[:len(old)-6] {
				require.False(t, cancel())
			}
			pass(time.Minute)
		}
		require.Equal(t, 180, left)
	})
}
