package queue_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/queue"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOptionsAreChecked(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		opt   queue.Option
		want  string
		drain string // what Drain says, if that is something else
	}{
		{queue.WithWorkers(0), "queue: workers 0: must be at least 1", ""},
		{queue.WithWorkers(-3), "queue: workers -3: must be at least 1", ""},
		{queue.WithWorkersPerKey(0), "queue: workers per key 0: must be at least 1", ""},
		{queue.WithCapacity(0), "queue: capacity 0: must be at least 1", ""},
		{queue.WithCapacityPerKey(0), "queue: capacity per key 0: must be at least 1", ""},
		{queue.WithMaxDelayed(0), "queue: delayed jobs 0: must be at least 1", ""},
		{queue.WithErrorHandler(nil), "queue: nil error handler", ""},
		{queue.WithJobContext(ctx), "queue: WithJobContext is for Drain", "-"},
		{queue.WithKeys(scheduler.Rate{}), "queue: shaper: ", "queue: limits of keys: not for Drain"},
		{queue.WithKeys(scheduler.Unlimited, shaper.WithQueue(0)), "queue: shaper: queue 0", "queue: limits of keys: not for Drain"},
		{queue.WithKeys(scheduler.Unlimited, shaper.WithMaxInFlightOfAll(3)), "in flight of all keys: given twice", "queue: limits of keys: not for Drain"},
		{queue.WithKeys(scheduler.Unlimited, shaper.WithQueueOfAll(3)), "of all keys: given twice", "queue: limits of keys: not for Drain"},
		{queue.WithKeys(scheduler.Unlimited, shaper.Under(free(t))), "given twice", "queue: limits of keys: not for Drain"},
		{queue.WithKeys(scheduler.Unlimited, shaper.WithRates(func(int) scheduler.Rate { return scheduler.Unlimited })), "the keys are of type string", "queue: limits of keys: not for Drain"},
		{queue.WithCapacity(7), "", "queue: capacity 7: not for Drain"},
		{queue.WithCapacityPerKey(7), "", "queue: capacity 7 per key: not for Drain"},
		{queue.WithWorkersPerKey(7), "", "queue: 7 workers per key: not for Drain"},
	} {
		q, err := queue.New(free(t), queue.Run, c.opt)
		if c.want == "" {
			assert.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, c.want)
			assert.Nil(t, q)
		}
		switch err := queue.Drain(ctx, free(t), &feed{end: io.EOF}, c.opt); c.drain {
		case "":
			assert.ErrorContains(t, err, c.want)
		case "-":
			assert.NoError(t, err)
		default:
			assert.EqualError(t, err, c.drain)
		}
	}
	// The last one counts, and only the result is checked.
	_, err := queue.New(free(t), queue.Run, queue.WithWorkers(0), queue.WithWorkers(1))
	assert.NoError(t, err)
}

func TestNilArgumentsAreErrors(t *testing.T) {
	_, err := queue.New(nil, queue.Run)
	assert.EqualError(t, err, "queue: nil line: must be a Shaper")
	_, err = queue.New[int](free(t), nil)
	assert.EqualError(t, err, "queue: nil function for the items")
	closed := free(t)
	require.NoError(t, closed.Close())
	_, err = queue.New(closed, queue.Run)
	assert.ErrorIs(t, err, queue.ErrClosed)

	q := newQueue(t, free(t))
	assert.EqualError(t, q.TrySubmit(nil), "queue: nil job")
	assert.EqualError(t, q.Submit(context.Background(), nil), "queue: nil job")
	job := func(context.Context) error { return nil }
	//lint:ignore SA1012 that it is refused is the point
	assert.EqualError(t, q.Submit(nil, job), "queue: nil context")
	//lint:ignore SA1012 that it is refused is the point
	assert.EqualError(t, q.SubmitTo(nil, "", job), "queue: nil context")
	assert.EqualError(t, q.TrySubmit(job, queue.Class(-1)), "queue: class -1: must not be negative")
	for _, cost := range []int{0, -1} {
		assert.ErrorIs(t, q.TrySubmit(job, queue.Cost(cost)), shaper.ErrCost)
	}
	//lint:ignore SA1012 that it is refused is the point
	_, err = q.Shutdown(nil)
	assert.EqualError(t, err, "queue: nil context")
	assert.NoError(t, q.TrySubmit(job), "a Shutdown that was refused must not have shut anything down")
	_, err = q.Shutdown(context.Background())
	assert.NoError(t, err)
	assert.Equal(t, queue.Stats{Submitted: 1, Done: 1}, q.Stats())
}

func TestJobsStartInOrderOneSlotEach(t *testing.T) {
	for _, workers := range []int{1, 2, 7} {
		synctest.Test(t, func(t *testing.T) {
			p := lineOf(t, 100*ms)
			q := newQueue(t, p, queue.WithWorkers(workers))
			j := newJournal()
			for i := range 20 {
				// Every third job outlasts several slots, so that workers come back out
				// of turn.
				submit(t, q, func(context.Context) error {
					j.note(i)
					if workers > 2 && i%3 == 0 {
						time.Sleep(250 * ms)
					}
					return nil
				})
			}
			_, err := q.Shutdown(context.Background())
			require.NoError(t, err)
			ids, at := j.starts()
			assert.Equal(t, upTo(0, 19), ids)
			assert.Equal(t, every(0, 100*ms, 20), at)
			assert.EqualValues(t, 20, p.Stats().Left)
		})
	}
}

func TestWorkersRunJobsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, lineOf(t, 100*ms), queue.WithWorkers(3))
		j := newJournal()
		for i := range 7 {
			submit(t, q, func(context.Context) error { j.note(i); time.Sleep(time.Second); return nil })
		}
		time.Sleep(500 * ms)
		assert.Equal(t, queue.Stats{Submitted: 7, Waiting: 4, Running: 3}, q.Stats())
		_, err := q.Shutdown(context.Background())
		require.NoError(t, err)
		_, at := j.starts()
		// Three at a time; the fourth needs a worker, which the first one becomes after a
		// second.
		assert.Equal(t, []time.Duration{0, 100 * ms, 200 * ms, 1000 * ms, 1100 * ms, 1200 * ms, 2000 * ms}, at)
	})
}

func TestBlockedSubmitsEnterInOrderAndAreNotOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, lineOf(t, 100*ms), queue.WithCapacity(2))
		j := newJournal()
		submit(t, q, j.job(0))
		synctest.Wait() // 0 has left, the line is empty
		submit(t, q, j.job(1), j.job(2))
		for i := 3; i <= 6; i++ {
			go submit(t, q, j.job(i))
			synctest.Wait()
		}
		assert.Equal(t, queue.Stats{Submitted: 3, Done: 1, Waiting: 2, Blocked: 4}, q.Stats())

		// Room appears at 100 ms, but it belongs to the call that is blocked longest.
		time.Sleep(100 * ms)
		synctest.Wait()
		assert.ErrorIs(t, q.TrySubmit(j.job(99)), queue.ErrFull)
		time.Sleep(400 * ms)
		synctest.Wait()
		assert.NoError(t, q.TrySubmit(j.job(7)))

		_, err := q.Shutdown(context.Background())
		require.NoError(t, err)
		ids, at := j.starts()
		assert.Equal(t, upTo(0, 7), ids)
		assert.Equal(t, every(0, 100*ms, 8), at)
	})
}

func TestBlockedSubmitLeavesWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, lineOf(t, 100*ms), queue.WithCapacity(1))
		j := newJournal()
		submit(t, q, j.job(0))
		synctest.Wait()
		submit(t, q, j.job(1))

		var first, second error
		ctx, cancel := context.WithTimeout(context.Background(), 50*ms)
		defer cancel()
		go func() { first = q.Submit(ctx, j.job(2)) }()
		synctest.Wait()
		go func() { second = q.Submit(context.Background(), j.job(3)) }()
		time.Sleep(50 * ms)
		synctest.Wait()
		assert.Equal(t, context.DeadlineExceeded, first)
		assert.Equal(t, int64(1), q.Stats().Blocked)
		time.Sleep(50 * ms)
		synctest.Wait()
		assert.NoError(t, second)

		time.Sleep(time.Second)
		assert.Equal(t, context.Canceled, q.Submit(dead(), j.job(4)), "a dead context is refused although there is room")
		_, err := q.Shutdown(context.Background())
		require.NoError(t, err)
		ids, _ := j.starts()
		assert.Equal(t, []int{0, 1, 3}, ids)
	})
}

func TestContextOfSubmitIsNotTheJobs(t *testing.T) {
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, free(t))
		ctx, cancel := context.WithCancel(context.WithValue(context.Background(), key{}, 1))
		err := q.Submit(ctx, func(ctx context.Context) error {
			time.Sleep(time.Second)
			assert.NoError(t, ctx.Err())
			assert.Nil(t, ctx.Value(key{}))
			_, has := ctx.Deadline()
			assert.False(t, has)
			return nil
		})
		require.NoError(t, err)
		cancel()
		_, err = q.Shutdown(context.Background())
		require.NoError(t, err)
	})
}

func TestJobMaySubmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, lineOf(t, 100*ms), queue.WithCapacity(1))
		j := newJournal()
		submit(t, q, func(context.Context) error {
			j.note(0)
			assert.NoError(t, q.TrySubmit(j.job(1)))
			assert.ErrorIs(t, q.TrySubmit(j.job(2)), queue.ErrFull)
			return nil
		})
		time.Sleep(time.Second)
		_, err := q.Shutdown(context.Background())
		require.NoError(t, err)
		_, at := j.starts()
		assert.Equal(t, every(0, 100*ms, 2), at)
	})
}

func TestFailedJobsAreReportedAsTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("boom")
		var l errorLog
		q := newQueue(t, free(t), queue.WithErrorHandler(l.handle))
		submit(t, q, func(context.Context) error { return boom }, func(context.Context) error { return nil })
		_, err := q.Shutdown(context.Background())
		require.NoError(t, err)
		assert.Equal(t, []error{boom}, l.all())
		assert.Equal(t, queue.Stats{Submitted: 2, Done: 1, Failed: 1}, q.Stats())
	})
}

// Shutdown must not outrun the last report, and the handler must be able to ask the queue
// things.
func TestShutdownWaitsForTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q *jobs
		heard := false
		q = newQueue(t, free(t), queue.WithErrorHandler(func(error) {
			assert.Equal(t, int64(1), q.Stats().Failed)
			time.Sleep(time.Second)
			heard = true
		}))
		submit(t, q, func(context.Context) error { return errors.New("boom") })
		_, err := q.Shutdown(context.Background())
		require.NoError(t, err)
		assert.True(t, heard)
	})
}

// Many goroutines on a line in which no call waits, under the race detector.
func TestStress(t *testing.T) {
	var l errorLog
	q := newQueue(t, free(t), queue.WithWorkers(8), queue.WithCapacity(4), queue.WithErrorHandler(l.handle))
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				assert.NoError(t, conserved(q.Stats()))
			}
		}
	})
	var submitters sync.WaitGroup
	var accepted atomic.Int64
	for g := range 8 {
		submitters.Go(func() {
			for i := range 500 {
				ctx, cancel := context.WithCancel(context.Background())
				if i%5 == 0 {
					go cancel()
				}
				if q.Submit(ctx, misbehave(g+i)) == nil {
					accepted.Add(1)
				}
				cancel()
				if q.TrySubmit(misbehave(g*i)) == nil {
					accepted.Add(1)
				}
			}
		})
	}
	submitters.Wait()
	_, err := q.Shutdown(context.Background())
	close(stop)
	wg.Wait()
	require.NoError(t, err)
	s := q.Stats()
	assert.NoError(t, conserved(s))
	assert.Zero(t, s.Waiting+s.Running+s.Returned+s.Blocked)
	assert.Len(t, l.all(), int(s.Failed))
	// Where the end of a ctx and room in the line came together, the queue and the caller
	// agree on what was first.
	assert.Equal(t, accepted.Load(), s.Submitted)
}

// The zero Queue hangs nowhere.
func TestZeroQueueSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const zero = "queue: zero Queue: make one with New"
		job := func(context.Context) error { return nil }
		var q jobs
		assert.EqualError(t, q.Submit(t.Context(), job), zero)
		assert.EqualError(t, q.TrySubmit(job), zero)
		unrun, err := q.Shutdown(t.Context())
		assert.Empty(t, unrun)
		assert.EqualError(t, err, zero)
		assert.NoError(t, q.Close())
		assert.Empty(t, q.Stop())
		assert.Zero(t, q.Stats())
	})
	assert.EqualError(t, new(queue.PanicError), "queue: panic: <nil>")
	assert.EqualError(t, new(queue.UnrunError[queue.Job]), "queue: job not run: <nil>")
}
