package queue_test

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/sluice-go/sluice/queue"
	"github.com/sluice-go/sluice/shaper"
)

// A broker gives messages out for the time of a lease, and again when that has run out. It keeps
// count of what a drain does with them.
type broker struct {
	fetch   time.Duration // how long Take takes once there is a message
	lease   time.Duration // 0: for good
	batch   int           // the most that it gives out at once; 0: any number
	run     func(ctx context.Context, id int) error
	endless bool // it blocks when all are given out; otherwise it ends then
	ended   chan struct{}

	mu       sync.Mutex
	begin    time.Time
	ready    []int
	arrived  chan struct{}
	given    map[int]int // how often each was
	until    map[int]time.Time
	started  []time.Duration
	ids      []int
	left     func() int64 // how many have had their slots
	taken    int
	most     int // in hand
	takes    int
	extended int
	returned []int
	done     []int
	dead     map[int]error
}

func newBroker(line *shaper.Shaper, messages int) *broker {
	b := &broker{
		left:  func() int64 { return line.Stats().Left },
		begin: time.Now(),
		given: map[int]int{}, until: map[int]time.Time{}, dead: map[int]error{},
		arrived: make(chan struct{}, 1), run: func(context.Context, int) error { return nil },
	}
	for id := range messages {
		b.ready = append(b.ready, id)
	}
	return b
}

func (b *broker) Take(ctx context.Context, n int) ([]queue.Message, error) {
	b.mu.Lock()
	b.takes++
	b.mu.Unlock()
	for {
		b.mu.Lock()
		b.expireLocked()
		there := len(b.ready) > 0
		b.mu.Unlock()
		if there {
			break
		}
		if !b.endless {
			return nil, io.EOF
		}
		select {
		case <-b.arrived:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	select {
	case <-time.After(b.fetch):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if b.batch > 0 {
		n = min(n, b.batch)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	n = min(n, len(b.ready))
	messages := make([]queue.Message, n)
	for i, id := range b.ready[:n] {
		b.given[id]++
		if b.lease > 0 {
			b.until[id] = time.Now().Add(b.lease)
		}
		messages[i] = &letter{b, id}
	}
	b.ready = b.ready[n:]
	b.taken += n
	b.most = max(b.most, b.taken-int(b.left())-len(b.returned))
	return messages, nil
}

// expireLocked has what was given out for too long be there again.
func (b *broker) expireLocked() {
	for id, until := range b.until {
		if !until.After(time.Now()) {
			delete(b.until, id)
			b.ready = append(b.ready, id)
		}
	}
}

// twice returns what was given out more than once, other than by being returned.
func (b *broker) twice() (ids []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expireLocked()
	returns := map[int]int{}
	for _, id := range b.returned {
		returns[id]++
	}
	for id, n := range b.given {
		if n > 1+returns[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// A letter is a message of a broker.
type letter struct {
	*broker
	id int
}

func (l *letter) Run(ctx context.Context) error {
	l.mu.Lock()
	l.started = append(l.started, time.Since(l.begin))
	l.ids = append(l.ids, l.id)
	l.mu.Unlock()
	return l.run(ctx, l.id)
}

func (l *letter) Lease() time.Duration { return l.lease }

func (l *letter) Extend(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.extended++
	if _, mine := l.until[l.id]; !mine {
		return io.ErrUnexpectedEOF
	}
	l.until[l.id] = time.Now().Add(l.lease)
	return nil
}

func (l *letter) Return(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.until, l.id)
	l.returned = append(l.returned, l.id)
	l.ready = append([]int{l.id}, l.ready...)
	select {
	case l.arrived <- struct{}{}:
	default:
	}
	return nil
}

func (l *letter) Done(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.until, l.id)
	l.done = append(l.done, l.id)
	return nil
}

func (l *letter) Dead(_ context.Context, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.until, l.id)
	l.dead[l.id] = err
	return nil
}
