package queue_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/queue"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// misbehave returns a job that ends in one of all possible ways.
func misbehave(i int) queue.Job {
	return func(context.Context) error {
		switch i % 5 {
		case 0:
			panic(i)
		case 1:
			runtime.Goexit()
		case 2:
			return io.ErrUnexpectedEOF
		}
		return nil
	}
}

func TestPanicErrorTellsWhatAndWhere(t *testing.T) {
	run := func(j queue.Job) *queue.PanicError {
		var l errorLog
		q := newQueue(t, free(t), queue.WithErrorHandler(l.handle))
		submit(t, q, j)
		_, err := q.Shutdown(context.Background())
		require.NoError(t, err)
		require.Len(t, l.all(), 1)
		p, ok := errors.AsType[*queue.PanicError](l.all()[0])
		require.True(t, ok)
		return p
	}

	p := run(func(context.Context) error { explode(); return nil })
	assert.Equal(t, "out of cheese", p.Value)
	assert.EqualError(t, p, "queue: panic: out of cheese")
	assert.NoError(t, p.Unwrap())
	assert.Contains(t, string(p.Stack), "queue_test.explode")
	assert.NotErrorIs(t, p, queue.ErrGoexit)

	p = run(func(context.Context) error { panic(io.ErrClosedPipe) })
	assert.ErrorIs(t, p, io.ErrClosedPipe)

	p = run(func(context.Context) error { panic([]int{1}) })
	assert.EqualError(t, p, "queue: panic: [1]")

	p = run(func(context.Context) error { panic(nil) })
	var nilPanic *runtime.PanicNilError
	assert.ErrorAs(t, p, &nilPanic)
	assert.NotErrorIs(t, p, queue.ErrGoexit)

	p = run(func(context.Context) error { leave(); return nil })
	assert.ErrorIs(t, p, queue.ErrGoexit)
	assert.EqualError(t, p, "queue: runtime.Goexit called")
	assert.Contains(t, string(p.Stack), "queue_test.leave")
}

//go:noinline
func explode() { panic("out of cheese") }

//go:noinline
func leave() { runtime.Goexit() }

// The handler is user code too: however it ends, no worker and no job is lost.
func TestHandlerMayMisbehave(t *testing.T) {
	logged := captureLog(t)
	for name, end := range map[string]func(){"panic": func() { panic("handler") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, lineOf(t, 100*ms), queue.WithErrorHandler(func(error) { end() }))
				j := newJournal()
				for i := range 10 {
					submit(t, q, func(ctx context.Context) error { j.note(i); return misbehave(i)(ctx) })
				}
				_, err := q.Shutdown(context.Background())
				require.NoError(t, err)
				_, at := j.starts()
				assert.Equal(t, every(0, 100*ms, 10), at)
				assert.Equal(t, queue.Stats{Submitted: 10, Done: 4, Failed: 6}, q.Stats())
			})
		})
	}
	assert.Contains(t, logged.String(), "queue: panic: handler")
}

func TestWithoutHandlerPanicsAndUnrunJobsAreLogged(t *testing.T) {
	logged := captureLog(t)
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, lineOf(t, time.Second))
		submit(t, q,
			func(context.Context) error { explode(); return nil },
			func(context.Context) error { return errors.New("the job's own matter") },
			func(context.Context) error { return nil })
		time.Sleep(1500 * ms)
		require.NoError(t, q.Close())
		assert.Equal(t, queue.Stats{Submitted: 3, Failed: 2, Returned: 1}, q.Stats())
	})
	assert.Contains(t, logged.String(), "out of cheese")
	assert.Contains(t, logged.String(), "queue_test.explode")
	assert.Contains(t, logged.String(), "queue: job not run: queue: closed")
	assert.NotContains(t, logged.String(), "own matter")
}

func captureLog(t *testing.T) *bytes.Buffer {
	var b bytes.Buffer
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&b, nil)))
	t.Cleanup(func() { slog.SetDefault(old) })
	return &b
}
