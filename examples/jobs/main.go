// Jobs drains a job queue with four workers, at ten jobs per second.
//
//	go run ./examples/jobs
//	go run ./examples/jobs -n 100 -rate 25/s -workers 8
//	go run ./examples/jobs -panic 5
//
// Each job takes longer than the time between two starts, so the workers overlap;
// still the jobs start in the order of their submission and at the pace. A job that
// panics costs one job and no worker. Ctrl-C stops: what has not started is handed
// back and listed.
//
// The exit status is 1 if a job failed or was handed back, and 2 for a bad flag.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/sluice-go/sluice/queue"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first Ctrl-C ends ctx; from then on a second one kills.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

type settings struct {
	jobs    int
	workers int
	panics  int
	rate    scheduler.Rate
	takes   time.Duration
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var s settings
	flags := flag.NewFlagSet("jobs", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&s.jobs, "n", 30, "how many jobs to run")
	flags.IntVar(&s.workers, "workers", 4, "how many of them at a time")
	flags.IntVar(&s.panics, "panic", 0, "the number of a job that panics")
	flags.DurationVar(&s.takes, "takes", 350*time.Millisecond, "how long a job takes")
	flags.TextVar(&s.rate, "rate", scheduler.PerSecond(10), "how many jobs start per period")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	switch {
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "jobs: unexpected argument %q\n", flags.Arg(0))
		return 2
	case s.jobs < 0:
		fmt.Fprintf(stderr, "jobs: -n %d: must not be negative\n", s.jobs)
		return 2
	}
	w := &work{settings: s, begin: time.Now(), out: stdout, errs: stderr}
	if err := w.drain(ctx); err != nil {
		fmt.Fprintln(stderr, "jobs:", err)
		return 2
	}
	if !w.report() {
		return 1
	}
	return 0
}

// work is one run of the program.
type work struct {
	settings
	begin time.Time
	out   io.Writer
	errs  io.Writer

	stats queue.Stats

	mu      sync.Mutex
	started []start
	ended   map[int]bool
	now     int // jobs that run
	most    int // and how many at most
}

// A start is when a job began.
type start struct {
	job int
	at  time.Duration
}

// drain submits all jobs and shuts the queue down, which lets the line run dry.
func (w *work) drain(ctx context.Context) error {
	pace, err := shaper.New(w.rate)
	if err != nil {
		return err
	}
	q, err := queue.New(pace, queue.Run,
		queue.WithWorkers(w.workers),
		queue.WithCapacity(max(w.jobs, 1)),
		queue.WithErrorHandler(w.failed))
	if err != nil {
		return err
	}
	w.ended = make(map[int]bool)
	for i := range w.jobs {
		if err := q.TrySubmit(w.job(i + 1)); err != nil {
			return err
		}
	}
	// When ctx ends so does the patience: what has not started comes back, and what
	// runs is asked to stop.
	_, _ = q.Shutdown(ctx)
	// That does not wait for what runs. A second call does: our jobs heed their ctx.
	_, _ = q.Shutdown(context.Background())
	w.stats = q.Stats()
	return nil
}

func (w *work) job(number int) queue.Job {
	return func(ctx context.Context) error {
		w.mu.Lock()
		w.started = append(w.started, start{number, time.Since(w.begin)})
		w.now++
		w.most = max(w.most, w.now)
		w.mu.Unlock()
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.now--
			w.ended[number] = true
		}()
		if number == w.panics {
			panic(fmt.Sprintf("job %d has a bug", number))
		}
		select {
		case <-time.After(w.takes):
			return nil
		case <-ctx.Done():
			return fmt.Errorf("job %d: %w", number, ctx.Err())
		}
	}
}

// failed is called by the worker that ran the job.
func (w *work) failed(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var bug *queue.PanicError
	if errors.As(err, &bug) {
		err = fmt.Errorf("panicked: %v (%d bytes of stack)", bug.Value, len(bug.Stack))
	}
	fmt.Fprintln(w.errs, "failed:", err)
}

// report tells what became of the jobs, and whether all went well.
func (w *work) report() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortStableFunc(w.started, func(a, b start) int { return cmp.Compare(a.at, b.at) })
	inOrder := slices.IsSortedFunc(w.started, func(a, b start) int { return a.job - b.job })
	fmt.Fprintf(w.out, "started   %d of %d, in order: %v, at most %d at a time\n",
		len(w.started), w.jobs, inOrder, w.most)
	if n := len(w.started); n > 1 {
		// n starts have n-1 gaps between them.
		took := w.started[n-1].at - w.started[0].at
		fmt.Fprintf(w.out, "pace      %.1f per second (stated: %v)\n", float64(n-1)/took.Seconds(), w.rate)
	}
	fmt.Fprintf(w.out, "done      %d\nfailed    %d\nunrun     %d%s\n",
		w.stats.Done, w.stats.Failed, w.stats.Returned, w.unrun())
	return w.stats.Done == int64(w.jobs)
}

// unrun lists what was handed back: the end of the line, as jobs start in order.
func (w *work) unrun() string {
	if w.stats.Returned == 0 {
		return ""
	}
	return fmt.Sprintf(" (jobs %d to %d)", int64(w.jobs)-w.stats.Returned+1, w.jobs)
}
