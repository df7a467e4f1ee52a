package queue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice/queue"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// jobs is a queue of functions.
type jobs = queue.Queue[queue.Job]

// lineOf returns a line that grants one slot every T.
func lineOf(t testing.TB, T time.Duration, opts ...shaper.Option) *shaper.Shaper {
	return newShaper(t, scheduler.Per(1, T), opts...)
}

// free returns a line in which no call waits.
func free(t testing.TB) *shaper.Shaper { return newShaper(t, scheduler.Unlimited) }

func newShaper(t testing.TB, r scheduler.Rate, opts ...shaper.Option) *shaper.Shaper {
	t.Helper()
	s, err := shaper.New(r, opts...)
	require.NoError(t, err)
	return s
}

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

func newQueue(t testing.TB, line *shaper.Shaper, opts ...queue.Option) *jobs {
	t.Helper()
	q, err := queue.New(line, queue.Run, opts...)
	require.NoError(t, err)
	return q
}

func submit(t testing.TB, q *jobs, jobs ...queue.Job) {
	t.Helper()
	for _, j := range jobs {
		assert.NoError(t, q.Submit(context.Background(), j))
	}
}

// conserved checks that every accepted job is in exactly one place.
func conserved(s queue.Stats) error {
	if sum := s.Done + s.Failed + s.Expired + s.Returned + s.Waiting + s.Delayed + s.Running; s.Submitted != sum {
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
