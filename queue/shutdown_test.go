package queue_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/queue"
	"github.com/sluice-go/sluice/shaper"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestShutdownDrainsAtPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, lineOf(t, 100*ms), queue.WithWorkers(2))
		j := newJournal()
		for i := range 5 {
			submit(t, q, j.job(i))
		}
		unrun, err := q.Shutdown(context.Background())
		assert.Empty(t, unrun)
		require.NoError(t, err)
		assert.Equal(t, 400*ms, time.Since(j.begin))
		_, at := j.starts()
		assert.Equal(t, every(0, 100*ms, 5), at)

		assert.ErrorIs(t, q.TrySubmit(j.job(9)), queue.ErrClosed)
		assert.ErrorIs(t, q.Submit(context.Background(), j.job(9)), queue.ErrClosed)
		unrun, err = q.Shutdown(context.Background())
		assert.Empty(t, unrun)
		assert.NoError(t, err)
		assert.NoError(t, q.Close())
	})
}

func TestShutdownHandsBackInOrderWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l errorLog
		q := newQueue(t, lineOf(t, 100*ms), queue.WithWorkers(2), queue.WithErrorHandler(l.handle))
		j := newJournal()
		// Job 1 ends when its context does, all others at once.
		submit(t, q, j.job(0), func(ctx context.Context) error { j.note(1); <-ctx.Done(); return context.Cause(ctx) })
		for i := 2; i < 8; i++ {
			submit(t, q, j.job(i))
		}
		why := errors.New("the process is told to stop")
		ctx, cancel := context.WithTimeoutCause(context.Background(), 350*ms, why)
		defer cancel()
		unrun, err := q.Shutdown(ctx)
		assert.Equal(t, context.DeadlineExceeded, err)
		assert.Equal(t, 350*ms, time.Since(j.begin))
		synctest.Wait()
		assert.Equal(t, []error{why}, l.all(), "the running job finds the reason in its context")
		assert.Equal(t, queue.Stats{Submitted: 8, Done: 3, Failed: 1, Returned: 4}, q.Stats())

		require.Len(t, unrun, 4)
		for _, job := range unrun {
			require.NoError(t, job(context.Background()))
		}
		ids, at := j.starts()
		assert.Equal(t, upTo(0, 7), ids)
		assert.Equal(t, every(0, 100*ms, 4), at[:4])

		unrun, err = q.Shutdown(context.Background())
		assert.Empty(t, unrun)
		assert.Equal(t, queue.ErrClosed, err)
	})
}

// A job that ignores its context cannot be stopped. Shutdown does not wait for it, and a
// second Shutdown can.
func TestShutdownDoesNotHangOnAStubbornJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, free(t))
		begin := time.Now()
		submit(t, q, func(context.Context) error { time.Sleep(time.Hour); return nil })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		unrun, err := q.Shutdown(ctx)
		assert.Empty(t, unrun)
		assert.Equal(t, context.DeadlineExceeded, err)
		assert.Equal(t, time.Second, time.Since(begin))
		assert.Equal(t, queue.Stats{Submitted: 1, Running: 1}, q.Stats())

		_, err = q.Shutdown(context.Background())
		assert.NoError(t, err, "it has run after all")
		assert.Equal(t, time.Hour, time.Since(begin))
		assert.Equal(t, queue.Stats{Submitted: 1, Done: 1}, q.Stats())
	})
}

func TestImpatientShutdownCutsAPatientOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, lineOf(t, time.Second))
		j := newJournal()
		for i := range 5 {
			submit(t, q, j.job(i))
		}
		var patient []queue.Job
		var patientErr error
		done := make(chan struct{})
		go func() { defer close(done); patient, patientErr = q.Shutdown(context.Background()) }()
		ctx, cancel := context.WithTimeout(context.Background(), 1500*ms)
		defer cancel()
		unrun, err := q.Shutdown(ctx)
		assert.Len(t, unrun, 3)
		assert.Equal(t, context.DeadlineExceeded, err)
		<-done
		assert.Empty(t, patient, "handed back exactly once")
		assert.Equal(t, queue.ErrClosed, patientErr, "not all have run, so not nil")
		assert.Equal(t, 1500*ms, time.Since(j.begin))
	})
}

func TestShutdownTurnsBlockedSubmitsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, lineOf(t, 100*ms), queue.WithCapacity(1))
		j := newJournal()
		submit(t, q, j.job(0))
		synctest.Wait()
		submit(t, q, j.job(1))
		var blocked [3]error
		for i := range blocked {
			go func() { blocked[i] = q.Submit(context.Background(), j.job(2)) }()
		}
		synctest.Wait()
		go q.Shutdown(context.Background())
		synctest.Wait()
		assert.Equal(t, [3]error{queue.ErrClosed, queue.ErrClosed, queue.ErrClosed}, blocked)
		time.Sleep(time.Second)
		ids, _ := j.starts()
		assert.Equal(t, []int{0, 1}, ids)
	})
}

func TestShutdownOfAnIdleQueueNeedsNoPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, free(t))
		_, err := q.Shutdown(dead())
		assert.NoError(t, err)

		q = newQueue(t, free(t))
		submit(t, q, func(context.Context) error { return nil })
		synctest.Wait()
		_, err = q.Shutdown(dead())
		assert.NoError(t, err)
	})
}

func TestCloseReportsWhatItCutsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l errorLog
		q := newQueue(t, lineOf(t, 100*ms), queue.WithWorkers(2), queue.WithErrorHandler(l.handle))
		j := newJournal()
		submit(t, q, func(ctx context.Context) error { j.note(0); <-ctx.Done(); return nil })
		submit(t, q, j.job(1), j.job(2), j.job(3))
		time.Sleep(150 * ms)
		require.NoError(t, q.Close())
		require.NoError(t, q.Close())
		assert.Equal(t, 150*ms, time.Since(j.begin))
		synctest.Wait()
		assert.Equal(t, queue.Stats{Submitted: 4, Done: 2, Returned: 2}, q.Stats())
		require.Len(t, l.all(), 2)
		for i, err := range l.all() {
			unrun, ok := errors.AsType[*queue.UnrunError[queue.Job]](err)
			require.True(t, ok)
			assert.ErrorIs(t, unrun, queue.ErrClosed)
			require.NoError(t, unrun.Item(context.Background()))
			ids, _ := j.starts()
			assert.Equal(t, i+2, ids[i+2])
		}
	})
}

func TestCloseBeforeUse(t *testing.T) {
	q := newQueue(t, free(t))
	assert.NoError(t, q.Close())
	assert.NoError(t, q.Close())
	assert.ErrorIs(t, q.TrySubmit(func(context.Context) error { return nil }), queue.ErrClosed)
}

// An error handler that ends its goroutine over one job must hear of the others all
// the same.
func TestCloseReportsEveryJobWhateverTheHandlerDoes(t *testing.T) {
	const jobs = 5
	var heard atomic.Int64
	q, err := queue.New(paused(t), queue.Run, queue.WithErrorHandler(func(error) {
		heard.Add(1)
		runtime.Goexit()
	}))
	require.NoError(t, err)
	for range jobs {
		require.NoError(t, q.TrySubmit(func(context.Context) error { return nil }))
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = q.Close()
	}()
	<-closed
	assert.EqualValues(t, jobs, heard.Load())
	assert.EqualValues(t, jobs, q.Stats().Returned)
}

// paused returns a line that grants nothing.
func paused(t *testing.T) *shaper.Shaper {
	s := free(t)
	s.Pause()
	return s
}
