package queue_test

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/queue"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/stretchr/testify/require"
)

// sourceOf gives out jobs, and takes a while for each.
type sourceOf struct {
	jobs  []queue.Job
	takes time.Duration
}

func (s *sourceOf) Next(context.Context) (queue.Job, error) {
	time.Sleep(s.takes)
	if len(s.jobs) == 0 {
		return nil, io.EOF
	}
	j := s.jobs[0]
	s.jobs = s.jobs[1:]
	return j, nil
}

// What the Shaper lets be in flight bounds the jobs that run, with as many workers as there may
// be; each place is given back, also by a job that panics or exits, and by a slot that was
// not used.
func TestShaperBoundsTheJobsThatRun(t *testing.T) {
	for name, run := range map[string]func(t *testing.T, s *shaper.Shaper, jobs []queue.Job){
		"Queue": func(t *testing.T, s *shaper.Shaper, jobs []queue.Job) {
			q, err := queue.New(s, queue.WithWorkers(10), queue.WithErrorHandler(func(error) {}))
			require.NoError(t, err)
			for _, j := range jobs {
				require.NoError(t, q.Submit(t.Context(), j))
			}
			_, err = q.Shutdown(t.Context())
			require.NoError(t, err)
		},
		"Drain": func(t *testing.T, s *shaper.Shaper, jobs []queue.Job) {
			src := &sourceOf{jobs: jobs}
			require.NoError(t, queue.Drain(t.Context(), src, s, queue.WithWorkers(10), queue.WithErrorHandler(func(error) {})))
		},
		"Drain, slowly": func(t *testing.T, s *shaper.Shaper, jobs []queue.Job) {
			src := &sourceOf{jobs: jobs, takes: 6 * ms}
			require.NoError(t, queue.Drain(t.Context(), src, s, queue.WithWorkers(10), queue.WithErrorHandler(func(error) {})))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := shaper.New(scheduler.PerSecond(100), shaper.WithMaxInFlight(2))
				require.NoError(t, err)
				var running, most atomic.Int64
				job := func(end func()) queue.Job {
					return func(context.Context) error {
						most.Store(max(most.Load(), running.Add(1))) // the pace keeps them apart
						time.Sleep(time.Second)
						running.Add(-1)
						end()
						return nil
					}
				}
				jobs := []queue.Job{job(func() {}), job(func() { panic("boom") }), job(func() {}), job(func() {}), job(func() {})}
				run(t, s, jobs)
				require.EqualValues(t, 2, most.Load())
				require.Panics(t, s.Release, "all places have been given back")
			})
		})
	}
}

// A queue that is closed while a job waits for a place takes none.
func TestShutdownWhileAPlaceIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := shaper.New(scheduler.PerSecond(100), shaper.WithMaxInFlight(1))
		require.NoError(t, err)
		q, err := queue.New(s, queue.WithWorkers(10))
		require.NoError(t, err)
		for range 3 {
			require.NoError(t, q.Submit(t.Context(), func(context.Context) error { time.Sleep(10 * time.Second); return nil }))
		}
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		back, err := q.Shutdown(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Len(t, back, 2)
		time.Sleep(10 * time.Second) // the one that runs ends
		require.Panics(t, s.Release, "all places have been given back")
	})
}
