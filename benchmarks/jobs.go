package main

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alitto/pond/v2"
	"github.com/panjf2000/ants/v2"

	"github.com/sluice-go/sluice/queue"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// A million jobs that do next to nothing are submitted and run, without a limit of the rate:
// cpu-ns/job and ns/job, bytes/job that were allocated, and allocs/job. The peers are pools of
// workers; they know no rate, no order of classes and no handing back.
//
// Waiting jobs: what one takes while none can start, as the one worker is busy. A pool of ants
// keeps no job that waits: a submit blocks.
const (
	aMillion   = 1_000_000
	jobWorkers = 100
)

func jobScenarios() []scenario {
	return []scenario{
		{
			name:     fmt.Sprintf("Jobs/n=%d/workers=%d", aMillion, jobWorkers),
			rounds:   otherRounds,
			subjects: []subject{{name: "sluice", pool: queuePool}, {name: "ants", pool: antsPool}, {name: "pond", pool: pondPool}},
			measure: func(s subject, scale scale) (sample, error) {
				n := aMillion / scale.crowd
				return measureJobs(s.pool(jobWorkers, n), n), nil
			},
		},
		{
			name:     fmt.Sprintf("WaitingJobs/n=%d", aMillion),
			rounds:   otherRounds,
			subjects: []subject{{name: "sluice", pool: queuePool}, {name: "pond", pool: pondPool}},
			measure: func(s subject, scale scale) (sample, error) {
				n := aMillion / scale.crowd
				return measureWaitingJobs(s.pool(1, n+1), n), nil
			},
		},
	}
}

// A pool runs jobs.
type pool struct {
	submit func(job func())
	close  func() // waits until all have run
}

func queuePool(workers, waiting int) pool {
	line := must(shaper.New(scheduler.Unlimited))
	q := must(queue.New(line, func(_ context.Context, job func()) error { job(); return nil },
		queue.WithWorkers(workers), queue.WithCapacity(max(waiting, 1))))
	return pool{
		submit: func(job func()) { succeed(q.TrySubmit(job)) },
		close:  func() { _, err := q.Shutdown(context.Background()); succeed(err) },
	}
}

func antsPool(workers, _ int) pool {
	p := must(ants.NewPool(workers))
	return pool{
		submit: func(job func()) { succeed(p.Submit(job)) },
		close:  func() { succeed(p.ReleaseTimeout(time.Minute)) },
	}
}

func pondPool(workers, _ int) pool {
	p := pond.NewPool(workers)
	return pool{submit: func(job func()) { p.Submit(job) }, close: p.StopAndWait}
}

func measureJobs(p pool, n int) sample {
	var ran sync.WaitGroup
	var sum atomic.Int64
	job := func() { sum.Add(1); ran.Done() }
	before := allocated()
	ran.Add(n)
	u := startUsage()
	for range n {
		p.submit(job)
	}
	ran.Wait()
	u.stop()
	bytes := allocated() - before
	p.close()
	if sum.Load() != int64(n) {
		panic(fmt.Sprintf("%d of %d jobs have run", sum.Load(), n))
	}
	each := float64(n)
	return sample{
		{"cpu-ns/job", float64(u.cpu.Nanoseconds()) / each},
		{"ns/job", float64(u.elapsed.Nanoseconds()) / each},
		{"bytes/job", float64(bytes) / each},
		{"allocs/job", float64(u.allocs) / each},
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func measureWaitingJobs(p pool, n int) sample {
	started, release := make(chan struct{}), make(chan struct{})
	p.submit(func() { close(started); <-release })
	<-started
	job := func() {}
	before := settled()
	for range n {
		p.submit(job)
	}
	objects := mallocs() - before.Mallocs
	after := settled()
	close(release)
	p.close()
	return sample{
		{"bytes/job", math.Max(0, (inUse(after)-inUse(before))/float64(n))},
		{"allocs/job", float64(objects) / float64(n)},
	}
}

func succeed(err error) {
	if err != nil {
		panic(err)
	}
}
