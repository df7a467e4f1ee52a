package queue_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/trial"
	"github.com/sluice-go/sluice/queue"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestStartsAgreeWithModel checks every start to the nanosecond against the textbook
// recurrence of a queue with n servers behind a pacer, which shares no idea with the
// implementation: job k starts at the latest of its submission, T after the start of job
// k-1, and the moment at which one of n workers is free. So the queue starts nothing
// early, and it never wedges or dawdles while a job, a slot and a worker are there.
func TestStartsAgreeWithModel(t *testing.T) {
	trial.Bubble(t, 70, func(t *testing.T, rnd *rand.Rand) {
		workers := 1 + rnd.IntN(6)
		T := time.Duration(1 + rnd.IntN(100_000_000))
		n := 1 + rnd.IntN(150)
		p := &pacer{T: T}
		q := newQueue(t, p, queue.WithWorkers(workers), queue.WithCapacity(n), queue.WithErrorHandler(func(error) {}))
		j := newJournal()

		var want []time.Duration
		idle := make([]time.Duration, workers) // when each worker is free, ascending
		next := time.Duration(0)               // when the pacer allows
		for k := range n {
			if rnd.IntN(3) == 0 {
				time.Sleep(upto(rnd, T*time.Duration(1+rnd.IntN(8))))
			}
			var lasts time.Duration
			if rnd.IntN(2) == 0 {
				lasts = upto(rnd, T*time.Duration(workers)*2)
			}
			start := max(time.Since(j.begin), next, idle[0])
			want = append(want, start)
			next = start + T
			idle[0] = start + lasts
			slices.Sort(idle)

			require.NoError(t, q.TrySubmit(func(ctx context.Context) error {
				j.note(k)
				time.Sleep(lasts)
				return misbehave(k)(ctx)
			}))
		}
		_, err := q.Shutdown(context.Background())
		require.NoError(t, err)
		ids, at := j.starts()
		require.Equal(t, upTo(0, n-1), ids)
		require.Equal(t, want, at)
		require.Equal(t, slices.Max(idle), max(time.Since(j.begin), slices.Max(idle)))
		slots, _, crowd := p.counts()
		require.Equal(t, n, slots, "one slot per job")
		require.LessOrEqual(t, crowd, workers)
	})
}

// TestNoJobIsLost does everything at once with random timing, and then asks of every
// single job what became of it.
func TestNoJobIsLost(t *testing.T) {
	trial.Bubble(t, 70, loseNoJob)
}

func loseNoJob(t *testing.T, rnd *rand.Rand) {
	const jobs = 100
	T := time.Duration(1 + rnd.IntN(10_000_000))
	p := &pacer{T: T}
	breaks := int64(1 << 30)
	if rnd.IntN(4) == 0 {
		breaks = rnd.Int64N(jobs)
	}
	gone := errors.New("gone")
	var calls atomic.Int64
	w := waiterFunc(func(ctx context.Context) error {
		if err := p.Wait(ctx); err != nil {
			return err
		}
		switch n := calls.Add(1); {
		case n > breaks:
			return gone
		case n%7 == 0:
			return later(T / 2)
		}
		return nil
	})
	var l errorLog
	q := newQueue(t, w, queue.WithWorkers(1+rnd.IntN(5)), queue.WithCapacity(1+rnd.IntN(20)), queue.WithErrorHandler(l.handle))

	var accepted, ran, back [jobs]int
	j := newJournal()
	tell := make(chan int, jobs) // ids of jobs that are run by the test after they were handed back
	make1 := func(id int, lasts time.Duration) queue.Job {
		return func(ctx context.Context) error {
			if ctx.Value(t) != nil {
				tell <- id
				return nil
			}
			ran[id]++
			j.note(id)
			select {
			case <-time.After(lasts):
			case <-ctx.Done():
				if id%2 == 0 {
					time.Sleep(lasts)
				}
			}
			return misbehave(id)(ctx)
		}
	}
	handBack := func(job queue.Job) {
		require.NoError(t, job(context.WithValue(context.Background(), t, true)))
		back[<-tell]++
	}

	order := make([]int, 0, jobs) // of acceptance, where it is known
	for id := range jobs {
		job := make1(id, upto(rnd, 6*T))
		patience := upto(rnd, 20*T)
		switch rnd.IntN(4) {
		case 0:
			if q.TrySubmit(job) == nil {
				accepted[id]++
				order = append(order, id)
			}
		default:
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), patience+1)
				defer cancel()
				if q.Submit(ctx, job) == nil {
					accepted[id]++
				}
			}()
			synctest.Wait() // either it is in, or it has its place among the blocked
			order = append(order, id)
		}
		if rnd.IntN(3) == 0 {
			time.Sleep(upto(rnd, 4*T) + 1)
			synctest.Wait()
			require.NoError(t, conserved(q.Stats()))
		}
	}

	ctx, cancel := context.WithTimeout(context.Background(), upto(rnd, 60*T))
	defer cancel()
	if rnd.IntN(3) == 0 {
		require.NoError(t, q.Close())
	}
	unrun, err := q.Shutdown(ctx)
	for _, job := range unrun {
		handBack(job)
	}
	if len(unrun) > 0 {
		require.Error(t, err)
	}
	if _, err := q.Shutdown(context.Background()); err == nil {
		require.Empty(t, unrun)
	}
	synctest.Wait()
	for _, err := range l.all() {
		if u, ok := errors.AsType[*queue.UnrunError](err); ok {
			handBack(u.Job)
		}
	}

	s := q.Stats()
	require.NoError(t, conserved(s))
	require.Zero(t, s.Waiting+s.Running+s.Blocked)
	for id := range jobs {
		require.Equal(t, accepted[id], ran[id]+back[id], "job %d: ran %d, back %d", id, ran[id], back[id])
		require.LessOrEqual(t, ran[id]+back[id], 1)
	}
	ids, _ := j.starts()
	order = slices.DeleteFunc(order, func(id int) bool { return ran[id] == 0 })
	require.Equal(t, order, append([]int{}, ids...)) // none at all is none in either spelling
}

// Jobs whose slots come all at once still leave the line in order; here seen with one
// worker and no pace at all.
func TestOrderWithoutPace(t *testing.T) {
	q := newQueue(t, free{}, queue.WithCapacity(8))
	j := newJournal()
	for i := range 2000 {
		if i%10 == 9 {
			submit(t, q, func(context.Context) error { j.note(i); runtime.Goexit(); return nil })
			continue
		}
		submit(t, q, j.job(i))
	}
	_, err := q.Shutdown(context.Background())
	require.NoError(t, err)
	ids, _ := j.starts()
	assert.Equal(t, upTo(0, 1999), ids)
}
