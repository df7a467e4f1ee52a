package queue_test

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/queue"
)

// feed is a Source of jobs that arrive at given times after begin, and of which it gives out one
// at a time. Then it returns end, or blocks if end is nil.
type feed struct {
	begin   time.Time
	arrive  []time.Duration
	fetch   time.Duration // how long Take takes once the job has arrived
	job     func(id int) queue.Job
	end     error
	next    int
	inside  atomic.Int32
	overlap atomic.Bool
	taken   []time.Duration
}

func newFeed(j *journal, arrive ...time.Duration) *feed {
	return &feed{begin: j.begin, arrive: arrive, job: j.job}
}

func (f *feed) Take(ctx context.Context, n int) ([]queue.Message, error) {
	if f.inside.Add(1) > 1 {
		f.overlap.Store(true)
	}
	defer f.inside.Add(-1)
	if err := f.arrival(ctx); err != nil {
		return nil, err
	}
	time.Sleep(f.fetch)
	id := f.next
	f.next++
	f.taken = append(f.taken, time.Since(f.begin))
	return []queue.Message{f.job(id)}, nil
}

// arrival blocks until the next job is there.
func (f *feed) arrival(ctx context.Context) error {
	var timer <-chan time.Time
	if f.next < len(f.arrive) {
		timer = time.After(f.arrive[f.next] - time.Since(f.begin))
	} else if f.end != nil {
		return f.end
	}
	select {
	case <-timer:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
