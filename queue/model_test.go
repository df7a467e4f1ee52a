package queue_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/trial"
	"github.com/sluice-go/sluice/queue"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fate is what a job was told to do, and what became of it.
type fate struct {
	key                 string
	notBefore, notAfter time.Duration // since the begin; 0: none
	class               int
	lasts               time.Duration
	again               int           // how often it asks to come again
	wait                time.Duration // until then
	ends                int

	accepted, blocked      bool
	came                   time.Duration // when it was accepted
	starts                 []time.Duration
	after                  time.Duration // it asked not to come again before
	ended, back, toHandler int
	expired                bool
}

// TestNoJobIsLost does everything at once with random timing, and asks of every single job
// whether it had one outcome, and kept to all that was asked of it.
func TestNoJobIsLost(t *testing.T) {
	trial.Bubble(t, 300, loseNoJob)
}

type lossless struct {
	t     *testing.T
	rnd   *rand.Rand
	begin time.Time
	T     time.Duration
	line  *shaper.Shaper
	q     *queue.Queue[int]
	jobs  []*fate

	workers, perKey int

	mu      sync.Mutex // for what jobs and the handler write
	running int
	ofKey   map[string]int
}

func (l *lossless) since() time.Duration { return time.Since(l.begin) }

func (l *lossless) handle(ctx context.Context, id int) error {
	f := l.start(id)
	select {
	case <-time.After(f.lasts):
	case <-ctx.Done():
		if id%2 == 0 {
			time.Sleep(f.lasts)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running--
	l.ofKey[f.key]--
	if len(f.starts) <= f.again {
		f.after = l.since() + f.wait
		return fmt.Errorf("not yet: %w", queue.Again(f.wait))
	}
	f.ended++
	switch f.ends % 5 {
	case 0:
		panic(id)
	case 1:
		runtime.Goexit()
	case 2:
		return io.ErrUnexpectedEOF
	}
	return nil
}

func (l *lossless) start(id int) *fate {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.jobs[id]
	f.starts = append(f.starts, l.since())
	l.running++
	l.ofKey[f.key]++
	assert.LessOrEqual(l.t, l.running, l.workers)
	assert.LessOrEqual(l.t, l.ofKey[f.key], l.perKey)
	return f
}

func (l *lossless) hears(err error) {
	u, ok := errors.AsType[*queue.UnrunError[int]](err)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.jobs[u.Item]
	f.toHandler++
	f.expired = errors.Is(u, queue.ErrExpired)
	if u.Item%3 == 0 {
		runtime.Goexit()
	}
}

func (l *lossless) handBack(ids []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, id := range ids {
		l.jobs[id].back++
		if i > 0 {
			require.LessOrEqual(l.t, l.arrival(ids[i-1]), l.arrival(id), "handed back in the order of the line: %+v %+v", l.jobs[ids[i-1]], l.jobs[id])
		}
	}
}

func (l *lossless) arrival(id int) time.Duration { return max(l.jobs[id].came, l.jobs[id].notBefore) }

func loseNoJob(t *testing.T, rnd *rand.Rand) {
	l := &lossless{t: t, rnd: rnd, begin: time.Now(), ofKey: map[string]int{}}
	l.T = time.Duration(1 + rnd.IntN(10_000_000))
	lineOpts := []shaper.Option{shaper.WithClasses(2, 5*l.T), shaper.WithQueue(1 + rnd.IntN(5))}
	if rnd.IntN(3) == 0 {
		lineOpts = append(lineOpts, shaper.WithMaxDelay(upto(rnd, 10*l.T)))
	}
	if rnd.IntN(3) == 0 {
		lineOpts = append(lineOpts, shaper.WithMaxInFlight(1+rnd.IntN(3)))
	}
	l.line = lineOf(t, l.T, lineOpts...)
	l.workers, l.perKey = 1+rnd.IntN(5), 1+rnd.IntN(3)
	var keyOpts []shaper.Option
	if rnd.IntN(3) == 0 {
		keyOpts = append(keyOpts, shaper.WithQueue(1+rnd.IntN(3)))
	}
	if rnd.IntN(4) == 0 {
		keyOpts = append(keyOpts, shaper.WithMaxKeys(2))
	}
	rate := scheduler.Unlimited
	if rnd.IntN(2) == 0 {
		rate = scheduler.Per(1, 1+upto(rnd, 3*l.T))
	}
	opts := []queue.Option{
		queue.WithWorkers(l.workers), queue.WithWorkersPerKey(l.perKey), queue.WithCapacity(1 + rnd.IntN(20)),
		queue.WithMaxDelayed(1 + rnd.IntN(10)), queue.WithErrorHandler(l.hears), queue.WithKeys(rate, keyOpts...),
	}
	if rnd.IntN(2) == 0 {
		opts = append(opts, queue.WithCapacityPerKey(1+rnd.IntN(10)))
	}
	var err error
	l.q, err = queue.New(l.line, l.handle, opts...)
	require.NoError(t, err)

	const jobs = 60
	for id := range jobs {
		l.submit(id)
		l.disturb()
		if rnd.IntN(3) == 0 {
			time.Sleep(upto(rnd, 4*l.T) + 1)
			synctest.Wait()
			require.NoError(t, conserved(l.q.Stats()))
		}
	}
	l.line.Resume()
	l.end()
	l.judge()
}

func (l *lossless) submit(id int) {
	rnd := l.rnd
	f := &fate{key: []string{"", "a", "b"}[rnd.IntN(3)], class: rnd.IntN(2), lasts: upto(rnd, 6*l.T), ends: rnd.IntN(20)}
	l.add(f)
	opts := []queue.JobOption{queue.Class(f.class)}
	if rnd.IntN(4) == 0 {
		f.again, f.wait = rnd.IntN(4), upto(rnd, 10*l.T)
	}
	if rnd.IntN(4) == 0 {
		f.notAfter = l.since() + upto(rnd, 30*l.T)
		opts = append(opts, queue.NotAfter(l.begin.Add(f.notAfter)))
	}
	if rnd.IntN(4) == 0 {
		f.notBefore = l.since() + upto(rnd, 20*l.T)
		opts = append(opts, queue.NotBefore(l.begin.Add(f.notBefore)))
	}
	if rnd.IntN(2) == 0 {
		f.came = l.since()
		accepted := l.q.TrySubmitTo(f.key, id, opts...) == nil
		l.mu.Lock()
		defer l.mu.Unlock()
		f.accepted = accepted
		return
	}
	patience := upto(rnd, 20*l.T)
	f.came = l.since()
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience+1)
		defer cancel()
		accepted := l.q.SubmitTo(ctx, f.key, id, opts...) == nil
		l.mu.Lock()
		defer l.mu.Unlock()
		f.accepted = accepted
	}()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	f.blocked = !f.accepted
}

func (l *lossless) add(f *fate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.jobs = append(l.jobs, f)
}

// disturb has other things happen to the line.
func (l *lossless) disturb() {
	switch l.rnd.IntN(40) {
	case 0:
		l.line.HoldUntil(time.Now().Add(upto(l.rnd, 20*l.T)))
	case 1:
		l.line.Pause()
	case 2, 3:
		l.line.Resume()
	case 4:
		l.line.Charge(l.rnd.IntN(5))
	case 5:
		require.NoError(l.t, l.line.SetRate(scheduler.Per(1, l.T+upto(l.rnd, l.T)+1)))
	case 6:
		l.handBack(l.q.Stop())
	case 7:
		if l.rnd.IntN(3) == 0 {
			require.NoError(l.t, l.line.Close())
		}
	case 8:
		if l.rnd.IntN(3) == 0 {
			l.close()
		}
	}
}

// close calls Close on a goroutine of its own, as the handler may end it.
func (l *lossless) close() {
	go l.q.Close()
	synctest.Wait()
}

// end ends the queue in one of all possible ways.
func (l *lossless) end() {
	ctx, cancel := context.WithTimeout(context.Background(), upto(l.rnd, 60*l.T))
	defer cancel()
	switch l.rnd.IntN(4) {
	case 0:
		l.close()
	case 1:
		l.handBack(l.q.Stop())
	}
	unrun, err := l.q.Shutdown(ctx)
	l.handBack(unrun)
	if len(unrun) > 0 {
		require.Error(l.t, err)
	}
	unrun, err = l.q.Shutdown(context.Background())
	l.handBack(unrun)
	if err == nil {
		require.Zero(l.t, l.q.Stats().Returned)
	}
	synctest.Wait()
}

func (l *lossless) judge() {
	t, s := l.t, l.q.Stats()
	require.NoError(t, conserved(s))
	require.Zero(t, s.Waiting+s.Running+s.Delayed+s.Blocked)
	var accepted, ended, unrun int64
	for id, f := range l.jobs {
		outcomes := f.ended + f.back + f.toHandler
		if !f.accepted {
			require.Zero(t, outcomes+len(f.starts), "job %d: refused: %+v", id, f)
			continue
		}
		accepted++
		ended += int64(f.ended)
		unrun += int64(f.back + f.toHandler)
		require.Equal(t, 1, outcomes, "job %d: %+v", id, f)
		if f.ended == 1 {
			require.Len(t, f.starts, f.again+1, "job %d", id)
		}
		for _, at := range f.starts {
			require.GreaterOrEqual(t, at, f.notBefore, "job %d", id)
			if f.notAfter > 0 {
				require.Less(t, at, f.notAfter, "job %d", id)
			}
		}
		if n := len(f.starts); n > 1 && f.ended == 1 {
			require.GreaterOrEqual(t, f.starts[n-1], f.after, "job %d", id)
		}
		require.False(t, f.expired && f.notAfter == 0, "job %d", id)
	}
	require.Equal(t, [3]int64{accepted, ended, unrun}, [3]int64{s.Submitted, s.Done + s.Failed, s.Expired + s.Returned})
	l.inOrder()
	if l.line.Stats().Waiting > 0 {
		t.Errorf("calls of the queue are left in the line")
	}
}

// inOrder checks the order of plain jobs of a key and a class. Of those that waited for room some
// may have got it at one instant.
func (l *lossless) inOrder() {
	last := map[string]time.Duration{}
	for id, f := range l.jobs {
		if len(f.starts) == 0 || f.again > 0 || f.notBefore > 0 || f.blocked {
			continue
		}
		of := fmt.Sprint(f.key, f.class)
		assert.GreaterOrEqual(l.t, f.starts[0], last[of], "job %d", id)
		last[of] = f.starts[0]
	}
}
