package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/sluice-go/sluice/queue"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A held key keeps neither the line nor a worker from the others, and its jobs are not lost.
func TestHeldKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		q := newQueue(t, lineOf(t, time.Second), queue.WithWorkers(1))
		require.NoError(t, q.Keys().HoldUntil("held", j.begin.Add(10*time.Second)))
		for id := range 3 {
			require.NoError(t, q.TrySubmitTo("held", j.job(id)))
			require.NoError(t, q.TrySubmitTo("other", j.job(10+id)))
		}
		_, err := q.Shutdown(t.Context())
		require.NoError(t, err)
		ids, at := j.starts()
		assert.Equal(t, []int{10, 11, 12, 0, 1, 2}, ids)
		assert.Equal(t, append(every(0, time.Second, 3), every(10*time.Second, time.Second, 3)...), at)
	})
}

// More keys than may be remembered have their jobs wait beside the line: none is lost, and a job
// that finds no room is told so.
func TestTooManyKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		q := newQueue(t, lineOf(t, time.Second), queue.WithCapacity(20), queue.WithKeys(scheduler.Unlimited, shaper.WithMaxKeys(2)))
		full := 0
		for id := range 30 {
			time.Sleep(ms)
			if err := q.TrySubmitTo(fmt.Sprint(id), j.job(id)); err != nil {
				require.ErrorIs(t, err, queue.ErrFull)
				full++
			}
		}
		assert.Equal(t, 9, full)
		_, err := q.Shutdown(t.Context())
		require.NoError(t, err)
		ids, at := j.starts()
		assert.Equal(t, upTo(0, 20), ids)
		assert.GreaterOrEqual(t, at[20], 20*time.Second)
		assert.Less(t, at[20], 25*time.Second)
	})
}

// What can never start is told at once.
func TestNeverInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		var l errorLog
		q := newQueue(t, lineOf(t, time.Second), queue.WithErrorHandler(l.handle))
		at := func(d time.Duration) time.Time { return j.begin.Add(d) }
		require.NoError(t, q.TrySubmit(j.job(0), queue.NotBefore(at(5*time.Second)), queue.NotAfter(at(3*time.Second))))
		require.NoError(t, q.TrySubmit(j.job(1), queue.NotAfter(at(-time.Second))))
		synctest.Wait()
		assert.Zero(t, time.Since(j.begin))
		require.Len(t, l.all(), 2)
		assert.ErrorIs(t, l.all()[0], queue.ErrExpired)
		assert.ErrorIs(t, l.all()[1], queue.ErrExpired)
		assert.ErrorIs(t, q.TrySubmit(j.job(2), queue.Cost(0)), shaper.ErrCost)
		assert.ErrorIs(t, q.Submit(dead(), j.job(3)), context.Canceled)
		assert.Equal(t, queue.Stats{Submitted: 2, Expired: 2}, q.Stats())
		_, err := q.Shutdown(t.Context())
		assert.NoError(t, err)
		ids, _ := j.starts()
		assert.Empty(t, ids)
	})
}

// A job that asks to come again at once, or before now, takes a slot of its own each time.
func TestAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		q := newQueue(t, lineOf(t, time.Second))
		tries := 0
		require.NoError(t, q.TrySubmit(func(context.Context) error {
			j.note(tries)
			if tries++; tries < 4 {
				return queue.Again(-time.Hour)
			}
			return nil
		}))
		_, err := q.Shutdown(t.Context())
		require.NoError(t, err)
		_, at := j.starts()
		assert.Equal(t, every(0, time.Second, 4), at)
	})
	// By a clock that is set by hand it need not be moved for that.
	mock := clock.NewMock()
	line, err := shaper.New(scheduler.Unlimited, shaper.WithClock(mock))
	require.NoError(t, err)
	q := newQueue(t, line)
	tries := 0
	require.NoError(t, q.TrySubmit(func(context.Context) error {
		if tries++; tries < 4 {
			return queue.Again(0)
		}
		return nil
	}))
	_, err = q.Shutdown(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 4, tries)
}

// A Shaper that ends under the queue has its jobs handed back, or run, but not lost.
func TestLineEndsUnderTheQueue(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(line *shaper.Shaper)
		ran  int
		back int
	}{
		"Close":    {func(line *shaper.Shaper) { _ = line.Close() }, 3, 7},
		"Shutdown": {func(line *shaper.Shaper) { _ = line.Shutdown(context.Background()) }, 10, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := newJournal()
				line := lineOf(t, time.Second)
				var l errorLog
				q := newQueue(t, line, queue.WithErrorHandler(l.handle))
				for id := range 10 {
					require.NoError(t, q.TrySubmit(j.job(id)))
				}
				time.Sleep(2500 * ms)
				test.end(line)
				time.Sleep(time.Minute)
				ids, _ := j.starts()
				assert.Equal(t, upTo(0, test.ran-1), ids)
				late := q.TrySubmit(j.job(99))
				synctest.Wait()
				back, err := q.Shutdown(t.Context())
				if late == nil { // the queue learns of the end by this job
					test.back++
				}
				assert.Len(t, back, test.back)
				assert.ErrorIs(t, err, shaper.ErrClosed)
				assert.Len(t, l.all(), 1)
				require.NoError(t, conserved(q.Stats()))
			})
		})
	}
}

// A function of the user's that panics while a job is submitted costs that job, and nothing else.
func TestPanicOfAWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		q := newQueue(t, lineOf(t, time.Second), queue.WithCapacity(1), queue.WithCapacityPerKey(1),
			queue.WithKeys(scheduler.Unlimited, shaper.WithWeights(func(key string) int {
				if key == "bad" {
					panic("no such tenant")
				}
				return 1
			})))
		for range 3 {
			assert.PanicsWithValue(t, "no such tenant", func() { _ = q.TrySubmitTo("bad", j.job(0)) })
		}
		require.NoError(t, q.TrySubmitTo("good", j.job(1)))
		_, err := q.Shutdown(t.Context())
		require.NoError(t, err)
		assert.Equal(t, queue.Stats{Submitted: 1, Done: 1}, q.Stats())
	})
}

// A handler of errors may do anything, to jobs of all fates.
func TestErrorHandlerMayPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("boom")
		var heard atomic.Int64
		q := newQueue(t, lineOf(t, time.Second), queue.WithErrorHandler(func(error) { heard.Add(1); panic("handler") }))
		fails := func(context.Context) error { return boom }
		for range 3 {
			require.NoError(t, q.TrySubmit(fails))
		}
		require.NoError(t, q.TrySubmit(fails, queue.NotAfter(time.Now().Add(2*time.Second))))
		time.Sleep(1500 * ms)
		require.NoError(t, q.Close())
		_, err := q.Shutdown(t.Context())
		assert.ErrorIs(t, err, queue.ErrClosed)
		assert.EqualValues(t, 4, heard.Load())
		assert.Equal(t, queue.Stats{Submitted: 4, Failed: 2, Expired: 1, Returned: 1}, q.Stats())
	})
}
