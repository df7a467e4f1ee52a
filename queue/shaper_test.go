package queue_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/queue"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newShaper(t *testing.T, r scheduler.Rate, opts ...shaper.Option) *shaper.Shaper {
	t.Helper()
	s, err := shaper.New(r, opts...)
	require.NoError(t, err)
	return s
}

// Three queues with four workers each share a Shaper whose line has less room than there are workers. Those who are
// refused come back at the right time: no job fails, no slot is left unused, and each queue keeps its order.
func TestWorkersRefusedByAFullShaperKeepThePace(t *testing.T) {
	for _, room := range []int{1, 2, 5, 20} {
		synctest.Test(t, func(t *testing.T) {
			const queues, jobs = 3, 30
			s := newShaper(t, scheduler.PerSecond(10), shaper.WithQueue(room))
			var l errorLog
			all := newJournal()
			var each [queues]*journal
			var qs [queues]*queue.Queue
			for i := range qs {
				qs[i] = newQueue(t, s, queue.WithWorkers(4), queue.WithErrorHandler(l.handle))
				each[i] = newJournal()
				for id := range jobs {
					submit(t, qs[i], func(context.Context) error { all.note(id); each[i].note(id); return nil })
				}
			}
			for i := range qs {
				_, err := qs[i].Shutdown(context.Background())
				require.NoError(t, err)
				ids, _ := each[i].starts()
				assert.Equal(t, upTo(0, jobs-1), ids)
			}
			assert.Empty(t, l.all())
			_, at := all.starts()
			assert.Equal(t, every(0, 100*ms, queues*jobs), at)
		})
	}
}

func TestClosedShaperStopsTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10))
		var l errorLog
		q := newQueue(t, s, queue.WithWorkers(2), queue.WithErrorHandler(l.handle))
		j := newJournal()
		for i := range 5 {
			submit(t, q, j.job(i))
		}
		time.Sleep(150 * ms)
		require.NoError(t, s.Close())
		synctest.Wait()
		assert.ErrorIs(t, q.TrySubmit(j.job(9)), shaper.ErrClosed)
		unrun, err := q.Shutdown(context.Background())
		assert.ErrorIs(t, err, shaper.ErrClosed)
		assert.Len(t, unrun, 3)
		require.Len(t, l.all(), 1)
		assert.ErrorIs(t, l.all()[0], shaper.ErrClosed)
	})
}

// What the Shaper's owner changes reaches jobs that wait in the queue.
func TestHoldAndRateReachTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10))
		q := newQueue(t, s, queue.WithWorkers(2))
		j := newJournal()
		for i := range 6 {
			submit(t, q, j.job(i))
		}
		time.Sleep(150 * ms)
		s.Pause()
		time.Sleep(850 * ms)
		s.Resume()
		time.Sleep(50 * ms)
		require.NoError(t, s.SetRate(scheduler.PerSecond(1)))
		_, err := q.Shutdown(context.Background())
		require.NoError(t, err)
		_, at := j.starts()
		// After the resume at 1 s the third leaves; half of T is owed at 1.05 s, and half of the new T is half a second.
		assert.Equal(t, []time.Duration{0, 100 * ms, 1000 * ms, 1550 * ms, 2550 * ms, 3550 * ms}, at)
	})
}

// A drain of a source that fetches ahead, and of one that tells when it is ready, against the real Shaper.
func TestDrainThroughAShaper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		f := newFeed(j, slices.Concat(make([]time.Duration, 5), every(time.Hour, 0, 5))...)
		s := newShaper(t, scheduler.PerSecond(3))
		require.NoError(t, queue.Drain(context.Background(), readyFeed{f}, s, queue.WithWorkers(4)))
		_, at := j.starts()
		third := 333_333_334 * time.Nanosecond
		two := 666_666_667 * time.Nanosecond
		sec := time.Second
		assert.Equal(t, []time.Duration{0, third, two, sec, sec + third,
			time.Hour, time.Hour + third, time.Hour + two, time.Hour + sec, time.Hour + sec + third}, at)
		assert.Zero(t, s.Stats().Refused)
		assert.Equal(t, at, f.taken)
	})
}
