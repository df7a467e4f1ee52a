package main

import (
	"context"
	"runtime/metrics"
	"sync"
	"time"
)

// A crowd is a number of goroutines, each of which runs one function.
type crowd struct {
	wg     sync.WaitGroup
	cancel context.CancelFunc
}

// gather starts n goroutines with one context.
func gather(n int, f func(context.Context)) *crowd {
	ctx, cancel := context.WithCancel(context.Background())
	c := &crowd{cancel: cancel}
	for range n {
		c.wg.Go(func() { f(ctx) })
	}
	return c
}

// disperse ends the context and waits until all callers are gone. That takes as long as
// the calls that are under way, where they know no context.
func (c *crowd) disperse() {
	c.cancel()
	c.wg.Wait()
}

// awaitBlocked returns when at least n goroutines more than before are blocked and all is
// calm, or after ten seconds. It reports whether that came about. Callers that are blocked
// at a lock on their way into the line are not taken for waiting: the lock's holder runs then.
func awaitBlocked(before, n int) bool {
	return await(func(c census) bool {
		return c.blocked >= before+n && c.active <= 1 // the one is this goroutine
	})
}

// awaitMost returns when nine tenths of n goroutines more than before are blocked, or
// after ten seconds. It is for a line that moves, so it is never calm.
func awaitMost(before, n int) {
	await(func(c census) bool { return c.blocked >= before+n*9/10 })
}

// await reports whether something has come about within ten seconds.
func await(what func(census) bool) bool {
	const enough = 3 // looks in a row, since the counts are not of one instant
	for met, looks := 0, 0; looks < 1000; looks++ {
		time.Sleep(10 * time.Millisecond)
		if what(count()) {
			met++
		} else {
			met = 0
		}
		if met == enough {
			return true
		}
	}
	return false
}

// census is how many goroutines are in which state, as the runtime counts them.
type census struct {
	blocked int
	active  int // runnable or running
}

func count() census {
	s := []metrics.Sample{
		{Name: "/sched/goroutines/waiting:goroutines"},
		{Name: "/sched/goroutines/runnable:goroutines"},
		{Name: "/sched/goroutines/running:goroutines"},
	}
	metrics.Read(s)
	n := func(i int) int { return int(s[i].Value.Uint64()) }
	return census{blocked: n(0), active: n(1) + n(2)}
}
