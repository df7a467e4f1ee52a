package queue_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
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
		p := lineOf(t, T)
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
		require.EqualValues(t, n, p.Stats().Left, "one slot per job")
	})
}

// Jobs whose slots come all at once still leave the line in order; here seen with one
// worker and no pace at all.
func TestOrderWithoutPace(t *testing.T) {
	q := newQueue(t, free(t), queue.WithCapacity(8))
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
