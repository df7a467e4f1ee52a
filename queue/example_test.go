package queue_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"sync"
	"time"

	"github.com/sluice-go/sluice/queue"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

func ship(_ context.Context, order string) error {
	fmt.Println("shipped", order)
	return nil
}

// Four workers, one start every ten milliseconds, in the order of submission.
func ExampleQueue() {
	ctx := context.Background()
	pace, err := shaper.New(scheduler.PerSecond(100))
	if err != nil {
		log.Fatal(err)
	}
	q, err := queue.New(pace, ship, queue.WithWorkers(4)) // ship(ctx, order) runs for each order
	if err != nil {
		log.Fatal(err)
	}
	for _, order := range []string{"A-1", "A-2", "A-3"} {
		if err := q.Submit(ctx, order); err != nil {
			log.Fatal(err) // not accepted
		}
	}
	unrun, err := q.Shutdown(ctx) // lets the line drain, or hands back the orders that are left
	fmt.Println(len(unrun), err)
	// Unordered output:
	// shipped A-1
	// shipped A-2
	// shipped A-3
	// 0 <nil>
}

// A partner takes 100 requests a second and tolerates two at a time. Jobs are functions here.
func Example() {
	pace, err := shaper.New(scheduler.PerSecond(100))
	if err != nil {
		panic(err)
	}
	q, err := queue.New(pace, queue.Run, queue.WithWorkers(2), queue.WithErrorHandler(func(err error) {
		if p, ok := errors.AsType[*queue.PanicError](err); ok {
			fmt.Println("a bug:", p.Value)
			return
		}
		fmt.Println("failed:", err)
	}))
	if err != nil {
		panic(err)
	}

	ctx := context.Background()
	for _, order := range []string{"A-1", "A-2", "A-3"} {
		// Submit waits while 1024 orders are in the line; TrySubmit would return ErrFull.
		err := q.Submit(ctx, func(ctx context.Context) error {
			if order == "A-2" {
				return fmt.Errorf("order %s: out of stock", order)
			}
			fmt.Println("sent", order)
			return nil
		})
		if err != nil {
			fmt.Println("not accepted:", err)
		}
	}

	// What has not started within 10 s comes back.
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	unrun, err := q.Shutdown(ctx)
	fmt.Println(len(unrun), "unrun,", err)
	fmt.Println(q.Stats().Done, "done,", q.Stats().Failed, "failed")
	// Unordered output:
	// sent A-1
	// failed: order A-2: out of stock
	// sent A-3
	// 0 unrun, <nil>
	// 2 done, 1 failed
}

// A job that could not be done yet asks to be run again. It takes a slot of its own then, and
// no worker waits.
func ExampleAgain() {
	begin := time.Now()
	tries := 0
	q, err := queue.New(shaper.MustNew(scheduler.PerSecond(100)), func(_ context.Context, order string) error {
		if tries++; tries < 3 {
			fmt.Println(order, "is not ready")
			return queue.Again(20 * time.Millisecond)
		}
		fmt.Println(order, "is shipped, after at least 40 ms:", time.Since(begin) >= 40*time.Millisecond)
		return nil
	})
	if err != nil {
		panic(err)
	}
	if err := q.TrySubmit("A-1", queue.NotAfter(begin.Add(time.Hour))); err != nil {
		panic(err)
	}
	_, err = q.Shutdown(context.Background())
	fmt.Println(err)
	// Output:
	// A-1 is not ready
	// A-1 is not ready
	// A-1 is shipped, after at least 40 ms: true
	// <nil>
}

// A slow tenant, 2 requests a second and one worker, keeps neither the line nor the workers from
// the others.
func ExampleQueue_SubmitTo() {
	account := shaper.MustNew(scheduler.PerSecond(100))
	var mu sync.Mutex
	var order []string
	q, err := queue.New(account, func(_ context.Context, request string) error {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, request)
		return nil
	}, queue.WithWorkers(4), queue.WithWorkersPerKey(1), queue.WithCapacityPerKey(100), queue.WithKeys(scheduler.PerSecond(2)))
	if err != nil {
		panic(err)
	}
	for _, r := range []struct{ tenant, request string }{{"slow", "slow 1"}, {"slow", "slow 2"}, {"other", "other 1"}} {
		if err := q.TrySubmitTo(r.tenant, r.request); err != nil {
			panic(err)
		}
	}
	_, _ = q.Shutdown(context.Background())
	fmt.Println(order)
	// Output:
	// [slow 1 other 1 slow 2]
}

// A basket gathers what is to be sent together.
type basket struct {
	mu    sync.Mutex
	items []string
}

func (b *basket) put(item string) (first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items = append(b.items, item)
	return len(b.items) == 1
}

// take takes up to n items out, and tells whether there are more.
func (b *basket) take(n int) (items []string, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = min(n, len(b.items))
	items, b.items = b.items[:n:n], b.items[n:]
	return items, len(b.items) > 0
}

// One request takes up to 3 items. A job takes what has gathered by the time that its slot has
// come, so requests are as few as the pace allows, and no item waits to fill one.
func Example_batches() {
	var waiting basket
	q, err := queue.New(shaper.MustNew(scheduler.PerSecond(100)), func(_ context.Context, b *basket) error {
		items, more := b.take(3)
		fmt.Println("sent", items)
		if more {
			return queue.Again(0) // another request, in a slot of its own
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	for _, item := range []string{"a", "b", "c", "d", "e"} {
		if waiting.put(item) && item != "a" {
			panic("a job is there already")
		}
	}
	// There is a job while the basket is not empty.
	if err := q.TrySubmit(&waiting); err != nil {
		panic(err)
	}
	_, _ = q.Shutdown(context.Background())
	// Output:
	// sent [a b c]
	// sent [d e]
}

// inbox is a Source of a channel.
type inbox <-chan string

func (b inbox) Take(ctx context.Context, n int) (messages []queue.Message, err error) {
	for len(messages) < n {
		select {
		case m, ok := <-b:
			if !ok {
				return messages, io.EOF
			}
			messages = append(messages, text(m))
			continue
		default:
		}
		if len(messages) > 0 {
			return messages, nil // what there is
		}
		select {
		case m, ok := <-b:
			if !ok {
				return nil, io.EOF
			}
			messages = append(messages, text(m))
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return messages, nil
}

// text is a Message that is acknowledged once it is handled.
type text string

func (m text) Run(context.Context) error  { fmt.Println("handled", m); return nil }
func (m text) Done(context.Context) error { fmt.Println("acknowledged", m); return nil }

func ExampleDrain() {
	messages := make(chan string, 2)
	messages <- "one"
	messages <- "two"
	close(messages)

	pace, err := shaper.New(scheduler.PerSecond(100))
	if err != nil {
		panic(err)
	}
	err = queue.Drain(context.Background(), pace, inbox(messages))
	fmt.Println(err)
	// Output:
	// handled one
	// acknowledged one
	// handled two
	// acknowledged two
	// <nil>
}

// A plain source fetches one job at a time.
func ExampleNext() {
	left := 2
	source := queue.Next(func(context.Context) (queue.Job, error) {
		if left == 0 {
			return nil, io.EOF
		}
		left--
		return func(context.Context) error { fmt.Println("a job"); return nil }, nil
	})
	fmt.Println(queue.Drain(context.Background(), shaper.MustNew(scheduler.PerSecond(100)), source))
	// Output:
	// a job
	// a job
	// <nil>
}
