package queue_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/queue"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// later is a refusal that tells a delay, as *shaper.Refusal does.
type later time.Duration

func (l later) Error() string            { return "later" }
func (l later) WouldWait() time.Duration { return time.Duration(l) }

// refuseFirst refuses n times with err and is free then.
func refuseFirst(n int64, err error, attempts *atomic.Int64) queue.Waiter {
	return waiterFunc(func(context.Context) error {
		if attempts.Add(1) <= n {
			return err
		}
		return nil
	})
}

func TestRefusalWithDelayIsTriedAgainThen(t *testing.T) {
	for _, c := range []struct {
		refusals int64
		err      error
		want     time.Duration
	}{
		{1, later(300 * ms), 300 * ms},
		{3, later(300 * ms), 900 * ms},
		{2, fmt.Errorf("wrapped: %w", later(7*ms)), 14 * ms},
		{5, later(1), 31 * ms},                    // never a spin
		{1, later(1000 * time.Hour), time.Minute}, // never deaf to a hold that is lifted
	} {
		synctest.Test(t, func(t *testing.T) {
			var attempts atomic.Int64
			var l errorLog
			q := newQueue(t, refuseFirst(c.refusals, c.err, &attempts), queue.WithErrorHandler(l.handle))
			j := newJournal()
			submit(t, q, j.job(0))
			_, err := q.Shutdown(context.Background())
			require.NoError(t, err)
			_, at := j.starts()
			assert.Equal(t, []time.Duration{c.want}, at)
			assert.Equal(t, c.refusals+1, attempts.Load())
			assert.Empty(t, l.all(), "to wait is not to fail")
			assert.Equal(t, queue.Stats{Submitted: 1, Done: 1}, q.Stats())
		})
	}
}

// A Waiter that does not know when, and says so by a wait that is too short, is asked ten
// times a second in the end.
func TestUnknownWaitIsAskedForEverMoreRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts atomic.Int64
		q := newQueue(t, refuseFirst(607, later(1), &attempts))
		j := newJournal()
		submit(t, q, j.job(0))
		_, err := q.Shutdown(context.Background())
		require.NoError(t, err)
		_, at := j.starts()
		assert.Equal(t, []time.Duration{127*ms + 600*100*ms}, at, "1, 2, 4 ... 64 ms, and then 100 ms")
	})
}

func TestSleepBetweenAttemptsEndsWithTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts atomic.Int64
		q := newQueue(t, refuseFirst(1, later(time.Hour), &attempts))
		submit(t, q, func(context.Context) error { return nil })
		synctest.Wait()
		unrun, err := q.Shutdown(dead())
		assert.Len(t, unrun, 1)
		assert.Equal(t, context.Canceled, err)
		begin := time.Now()
		_, err = q.Shutdown(context.Background())
		assert.ErrorIs(t, err, queue.ErrClosed)
		assert.Zero(t, time.Since(begin), "the worker slept on")
	})
}

func TestFinalWaiterErrorStopsTheQueue(t *testing.T) {
	gone := errors.New("gone")
	for name, c := range map[string]struct {
		fail func() error
		want error
	}{
		"error":     {func() error { return gone }, gone},
		"no delay":  {func() error { return later(0) }, later(0)},
		"ctx error": {func() error { return context.Canceled }, context.Canceled}, // not of our ctx
		"panic":     {func() error { panic(gone) }, gone},
		"goexit":    {func() error { runtime.Goexit(); return nil }, queue.ErrGoexit},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls atomic.Int64
				p := &pacer{T: 100 * ms}
				w := waiterFunc(func(ctx context.Context) error {
					if calls.Add(1) == 3 {
						time.Sleep(250 * ms)
						return c.fail()
					}
					return p.Wait(ctx)
				})
				var l errorLog
				q := newQueue(t, w, queue.WithWorkers(3), queue.WithErrorHandler(l.handle))
				j := newJournal()
				long := func(id int) queue.Job {
					return func(ctx context.Context) error { j.note(id); time.Sleep(time.Second); return ctx.Err() }
				}
				// 0 and 1 run until 1.0 and 1.1 s. The third worker asks for a slot for 2
				// and is told at 250 ms.
				submit(t, q, long(0), long(1), j.job(2), j.job(3))
				time.Sleep(500 * ms)
				assert.ErrorIs(t, q.Submit(context.Background(), j.job(9)), c.want)
				assert.ErrorIs(t, q.TrySubmit(j.job(9)), c.want)
				require.Len(t, l.all(), 1, "told once")
				assert.ErrorIs(t, l.all()[0], c.want)
				assert.Equal(t, queue.Stats{Submitted: 4, Waiting: 2, Running: 2}, q.Stats())

				unrun, err := q.Shutdown(context.Background())
				assert.ErrorIs(t, err, c.want)
				assert.Equal(t, 1100*ms, time.Since(j.begin), "Shutdown waits for the running jobs")
				assert.Equal(t, queue.Stats{Submitted: 4, Done: 2, Returned: 2}, q.Stats(), "the jobs that ran had their slots")
				require.Len(t, unrun, 2)
				for _, job := range unrun {
					require.NoError(t, job(context.Background()))
				}
				ids, _ := j.starts()
				assert.Equal(t, upTo(0, 3), ids)

				again, err := q.Shutdown(context.Background())
				assert.Empty(t, again)
				assert.ErrorIs(t, err, c.want)
			})
		})
	}
}

func TestFinalWaiterErrorEndsTheOtherWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("gone")
		var calls atomic.Int64
		var l errorLog
		q := newQueue(t, waiterFunc(func(ctx context.Context) error {
			if calls.Add(1) == 1 {
				<-ctx.Done() // a long wait, which is granted in the very moment in which it is given up
				return nil
			}
			time.Sleep(time.Second)
			return gone
		}), queue.WithWorkers(2), queue.WithErrorHandler(l.handle))
		j := newJournal()
		submit(t, q, j.job(0))
		synctest.Wait()
		submit(t, q, j.job(1))
		unrun, err := q.Shutdown(context.Background())
		assert.ErrorIs(t, err, gone)
		assert.Len(t, unrun, 2)
		assert.Len(t, l.all(), 1)
		assert.Equal(t, time.Second, time.Since(j.begin))
	})
}

func TestFinalWaiterErrorTurnsBlockedSubmitsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("gone")
		q := newQueue(t, waiterFunc(func(context.Context) error { time.Sleep(time.Second); return gone }),
			queue.WithCapacity(1), queue.WithErrorHandler(func(error) {}))
		j := newJournal()
		submit(t, q, j.job(0))
		err := q.Submit(context.Background(), j.job(1))
		assert.ErrorIs(t, err, gone)
		assert.EqualError(t, err, "queue: waiter: gone")
		assert.Equal(t, time.Second, time.Since(j.begin))
		unrun, err := q.Shutdown(context.Background())
		assert.ErrorIs(t, err, gone)
		assert.Len(t, unrun, 1)
	})
}

func TestCloseAfterWaiterErrorReportsTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("gone")
		var l errorLog
		q := newQueue(t, waiterFunc(func(context.Context) error { return gone }), queue.WithErrorHandler(l.handle))
		j := newJournal()
		require.NoError(t, q.TrySubmit(j.job(0)))
		synctest.Wait()
		require.NoError(t, q.Close())
		require.Len(t, l.all(), 2)
		unrun, ok := errors.AsType[*queue.UnrunError](l.all()[1])
		require.True(t, ok)
		assert.ErrorIs(t, unrun, gone)
		require.NoError(t, unrun.Job(context.Background()))
		ids, _ := j.starts()
		assert.Equal(t, []int{0}, ids)
	})
}
