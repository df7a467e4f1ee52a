package main

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	xtime "golang.org/x/time/rate"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// Waiting without a goroutine: 10,000 calls wait all the time, each of which is called back
// when it leaves and waits again. Figures are those of a blocked wait.
//
// Of x/time, xtime-afterfunc is what comes closest: Reserve, and time.AfterFunc for the delay
// that it tells. xtime-wait are as many goroutines that are blocked in Wait.
func enqueueScenarios() []scenario {
	var all []scenario
	for _, line := range []crowded{{10_000, 10_000, targetRounds}, {100_000, 10_000, targetRounds}} {
		all = append(all, scenario{
			name:     fmt.Sprintf("Enqueue/rate=%d/calls=%d", line.hertz, line.callers),
			rounds:   line.rounds,
			subjects: enqueuers,
			measure: func(s subject, scale scale) (sample, error) {
				calls := max(1, line.callers/scale.crowd)
				if s.enqueue == nil {
					return measureBlocked(s.pace(line.rate(), calls), line.rate(), calls, scale)
				}
				return measureEnqueue(s.enqueue(line.rate(), calls), line.rate(), calls, scale)
			},
		})
	}
	return append(all, scenario{
		name:     "Enqueued/calls=10000",
		rounds:   targetRounds,
		subjects: enqueuers,
		measure: func(s subject, scale scale) (sample, error) {
			calls := 10_000 / scale.crowd
			if s.enqueue == nil {
				return measureBlockedMemory(s.pace(standstill, calls), calls)
			}
			return measureEnqueued(s.enqueue(standstill, calls), calls)
		},
	})
}

var enqueuers = []subject{
	{name: "sluice", enqueue: enqueueSluice},
	{name: "xtime-afterfunc", enqueue: enqueueXTime},
	{name: "xtime-wait", pace: paceXTime},
}

// An enqueuer has a call wait without blocking: it is called back when the call leaves.
type enqueuer func(*callback)

// A callback is the same function in the forms that libraries ask for, so that none has to wrap
// it for each call.
type callback struct {
	plain func()
	erred func(error)
}

func newCallback(f func()) *callback {
	return &callback{f, func(err error) {
		if err != nil {
			panic(err) // the line has room for all, and no call has a deadline
		}
		f()
	}}
}

func enqueueSluice(r rate, waiting int) enqueuer {
	s := must(shaper.New(scheduler.Every(r.interval()), shaper.WithQueue(2*waiting+16)))
	return func(c *callback) { must(s.Enqueue(shaper.Call{}, c.erred)) }
}

func enqueueXTime(r rate, _ int) enqueuer {
	l := xtime.NewLimiter(xtime.Every(r.interval()), 1)
	return func(c *callback) { time.AfterFunc(l.Reserve().Delay(), c.plain) }
}

func measureEnqueue(enqueue enqueuer, r rate, calls int, scale scale) (sample, error) {
	var departed atomic.Int64
	for range calls {
		var again *callback
		again = newCallback(func() {
			departed.Add(1)
			enqueue(again)
		})
		enqueue(again)
	}
	return measureDepartures(&departed, r, scale)
}

// What a waiting call takes: bytes/call is the heap in use after a collection plus the stacks,
// without what the caller keeps itself, and allocs/call are those of getting it to wait.
func measureEnqueued(enqueue enqueuer, calls int) (sample, error) {
	var departed atomic.Int64
	c := newCallback(func() { departed.Add(1) })
	enqueue(c) // uses up the burst
	for departed.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	before := settled()
	for range calls {
		enqueue(c)
	}
	objects := mallocs() - before.Mallocs
	after := settled()
	if n := departed.Load(); n != 1 {
		return nil, fmt.Errorf("%d calls left at a standstill", n-1)
	}
	runtime.KeepAlive(enqueue)
	return sample{
		{"bytes/call", (inUse(after) - inUse(before)) / float64(calls)},
		{"allocs/call", float64(objects) / float64(calls)},
	}, nil
}

func measureBlockedMemory(l limiter, calls int) (sample, error) {
	if err := l.wait(context.Background()); err != nil {
		return nil, err
	}
	w, err := weigh(calls, l.wait)
	if err != nil {
		return nil, err
	}
	return sample{{"bytes/call", w.heap + w.stack}, {"allocs/call", w.allocs}}, nil
}

func inUse(m runtime.MemStats) float64 { return float64(m.HeapAlloc) + float64(m.StackInuse) }
