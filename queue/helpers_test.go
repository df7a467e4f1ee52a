package queue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice/queue"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pacer is a Waiter for fake time: one slot every T, not a nanosecond early or late, and
// the line's order is that of the mutex. A cancelled wait forfeits its slot, which only
// happens here when a queue ends.
type pacer struct {
	T time.Duration

	mu      sync.Mutex
	tat     time.Time
	slots   int // granted
	waiting int // calls of Wait in progress
	crowd   int // the most calls of Wait that were in progress together
}

func (p *pacer) Wait(ctx context.Context) error {
	p.mu.Lock()
	now := time.Now()
	due := now
	if p.tat.After(now) {
		due = p.tat
	}
	p.tat = due.Add(p.T)
	p.waiting++
	p.crowd = max(p.crowd, p.waiting)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.waiting--
		p.mu.Unlock()
	}()

	t := time.NewTimer(due.Sub(now))
	defer t.Stop()
	select {
	case <-t.C:
		p.mu.Lock()
		p.slots++
		p.mu.Unlock()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *pacer) counts() (slots, waiting, crowd int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slots, p.waiting, p.crowd
}

// free is a Waiter that never makes a worker wait.
type free struct{}

func (free) Wait(context.Context) error { return nil }

// waiterFunc is a Waiter made of a function.
type waiterFunc func(ctx context.Context) error

func (f waiterFunc) Wait(ctx context.Context) error { return f(ctx) }

// journal notes which job started when.
type journal struct {
	begin time.Time

	mu  sync.Mutex
	ids []int
	at  []time.Duration
}

func newJournal() *journal { return &journal{begin: time.Now()} }

func (j *journal) note(id int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ids = append(j.ids, id)
	j.at = append(j.at, time.Since(j.begin))
}

// job returns a job that notes its start and returns nil.
func (j *journal) job(id int) queue.Job {
	return func(context.Context) error { j.note(id); return nil }
}

func (j *journal) starts() (ids []int, at []time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]int(nil), j.ids...), append([]time.Duration(nil), j.at...)
}

// sinceLast is the time since the last start.
func (j *journal) sinceLast() time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	return time.Since(j.begin) - j.at[len(j.at)-1]
}

// errorLog is an error handler that keeps what it hears.
type errorLog struct {
	mu   sync.Mutex
	errs []error
}

func (l *errorLog) handle(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, err)
}

func (l *errorLog) all() []error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]error(nil), l.errs...)
}

func newQueue(t testing.TB, w queue.Waiter, opts ...queue.Option) *queue.Queue {
	t.Helper()
	q, err := queue.New(w, opts...)
	require.NoError(t, err)
	return q
}

func submit(t testing.TB, q *queue.Queue, jobs ...queue.Job) {
	t.Helper()
	for _, j := range jobs {
		assert.NoError(t, q.Submit(context.Background(), j))
	}
}

// conserved checks that every accepted job is in exactly one place.
func conserved(s queue.Stats) error {
	if sum := s.Done + s.Failed + s.Returned + s.Waiting + s.Running; s.Submitted != sum {
		return fmt.Errorf("submitted %d, accounted for %d: %+v", s.Submitted, sum, s)
	}
	return nil
}

// every returns first, first+T, first+2T, ...
func every(first, T time.Duration, n int) []time.Duration {
	at := make([]time.Duration, n)
	for i := range at {
		at[i] = first + time.Duration(i)*T
	}
	return at
}

// upTo returns first, ..., last.
func upTo(first, last int) []int {
	ids := make([]int, 0, last-first+1)
	for i := first; i <= last; i++ {
		ids = append(ids, i)
	}
	return ids
}

const ms = time.Millisecond

// dead is a context that has ended.
func dead() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// upto returns a random duration in [0, d).
func upto(rnd *rand.Rand, d time.Duration) time.Duration { return time.Duration(rnd.Int64N(int64(d))) }
