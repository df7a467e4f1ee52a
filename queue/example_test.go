package queue_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
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
	q, err := queue.New(pace, queue.WithWorkers(4))
	if err != nil {
		log.Fatal(err)
	}
	for _, order := range []string{"A-1", "A-2", "A-3"} {
		err := q.Submit(ctx, func(ctx context.Context) error { return ship(ctx, order) })
		if err != nil {
			log.Fatal(err) // not accepted
		}
	}
	unrun, err := q.Shutdown(ctx) // lets the line drain, or hands back what is left
	fmt.Println(len(unrun), err)
	// Unordered output:
	// shipped A-1
	// shipped A-2
	// shipped A-3
	// 0 <nil>
}

// A partner takes 100 requests a second and tolerates two at a time.
func Example() {
	pace, err := shaper.New(scheduler.PerSecond(100))
	if err != nil {
		panic(err)
	}
	q, err := queue.New(pace, queue.WithWorkers(2), queue.WithErrorHandler(func(err error) {
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

	// What has not started within 10 s comes back, to be stored for the next start of the
	// program.
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

// inbox is a Source over a channel that a consumer fills ahead of time, so Next returns at
// once when there is a message, and Ready tells when that is.
type inbox struct {
	messages <-chan string
	head     string
	have     bool
}

func (b *inbox) Ready(ctx context.Context) error {
	if b.have {
		return nil
	}
	select {
	case m, ok := <-b.messages:
		if !ok {
			return io.EOF
		}
		b.head, b.have = m, true
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *inbox) Next(ctx context.Context) (queue.Job, error) {
	if err := b.Ready(ctx); err != nil {
		return nil, err
	}
	m := b.head
	b.have = false
	return func(context.Context) error {
		fmt.Println("handled", m)
		return nil // and acknowledge m here
	}, nil
}

func ExampleDrain() {
	messages := make(chan string, 3)
	for _, m := range []string{"one", "two", "three"} {
		messages <- m
	}
	close(messages)

	pace, err := shaper.New(scheduler.PerSecond(100))
	if err != nil {
		panic(err)
	}
	err = queue.Drain(context.Background(), &inbox{messages: messages}, pace)
	fmt.Println(err)
	// Output:
	// handled one
	// handled two
	// handled three
	// <nil>
}
