package shaper_test

import (
	"context"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// Sixty a minute for the account, and six a minute for each sender. A sender that waits for its
// own limit is in the way of no other.
func ExampleUnder() {
	account, err := shaper.New(scheduler.PerMinute(60))
	if err != nil {
		log.Fatal(err)
	}
	senders, err := shaper.NewGroup[string](scheduler.PerMinute(6), shaper.Under(account))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(senders.Allow("+15550100"))
	fmt.Println(senders.Delay("+15550100").Round(time.Second), "for its own limit")
	fmt.Println(senders.Delay("+15550101").Round(time.Second), "for the account's")
	// Output:
	// true
	// 10s for its own limit
	// 1s for the account's
}

// A customer that pays for more gets three calls for each one of another's, while both have
// calls that wait. What one leaves unused goes to the other.
func ExampleWithWeights() {
	account, err := shaper.New(scheduler.PerSecond(100))
	if err != nil {
		log.Fatal(err)
	}
	weights := map[string]int{"gold": 3, "basic": 1}
	customers, err := shaper.NewGroup[string](scheduler.PerSecond(90), shaper.WithBurst(10), shaper.Under(account),
		shaper.WithWeights(func(customer string) int { return weights[customer] }))
	if err != nil {
		log.Fatal(err)
	}

	account.Pause() // until all have come
	left := make(chan string, 12)
	for _, customer := range []string{"basic", "gold"} {
		for range 6 {
			_, err := customers.Enqueue(customer, shaper.Call{}, func(error) { left <- customer })
			if err != nil {
				log.Fatal(err)
			}
		}
	}
	account.Resume()
	for range 12 {
		fmt.Print(<-left, " ")
	}
	// Output:
	// gold gold basic gold gold gold basic gold basic basic basic basic
}

// Calls wait without a goroutine each. The function must not block: it hands the work on.
func ExampleShaper_Enqueue() {
	s, err := shaper.New(scheduler.PerSecond(10))
	if err != nil {
		log.Fatal(err)
	}
	var answered sync.WaitGroup
	for _, message := range []string{"one", "two", "three"} {
		answered.Add(1)
		_, err := s.Enqueue(shaper.Call{}, func(err error) {
			defer answered.Done()
			if err != nil {
				fmt.Println(message, "is not sent:", err)
				return
			}
			fmt.Println("send", message)
		})
		if err != nil {
			log.Fatal(err) // refused on arrival; the function is not called
		}
	}
	answered.Wait()
	// Output:
	// send one
	// send two
	// send three
}

// A call may be taken back while it waits. It is as if it had never come.
func ExampleShaper_Enqueue_cancel() {
	mock := clock.NewMock()
	s := shaper.MustNew(scheduler.PerMinute(1), shaper.WithClock(mock))
	fmt.Println(s.Allow())
	cancel, err := s.Enqueue(shaper.Call{}, func(error) { fmt.Println("never called") })
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Delay())
	fmt.Println(cancel(), cancel())
	fmt.Println(s.Delay())
	// Output:
	// true
	// 2m0s
	// true false
	// 1m0s
}

// What paces its calls by a Waiter, as transport does, is given one key of a Group, and needs
// not know of the others.
func ExampleGroup_Of() {
	account := shaper.MustNew(scheduler.PerSecond(10))
	senders := shaper.MustNewGroup[string](scheduler.PerMinute(1), shaper.Under(account))
	greet := func(ctx context.Context, pace interface{ Wait(context.Context) error }) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if err := pace.Wait(ctx); err != nil {
			fmt.Println("not now")
			return
		}
		fmt.Println("hello")
	}
	ctx := context.Background()
	greet(ctx, senders.Of("+15550100"))
	greet(ctx, senders.Of("+15550101"))
	greet(ctx, senders.Of("+15550100"))
	// Output:
	// hello
	// hello
	// not now
}

// A one-time password overtakes what came up to a minute before it. Inside a class calls leave
// in the order in which they came.
func ExampleWithClasses() {
	s, err := shaper.New(scheduler.PerSecond(500), shaper.WithClasses(2, time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	s.Pause() // until all have come
	left := make(chan string, 4)
	for _, message := range []struct {
		text  string
		class int
	}{{"offer 1", 1}, {"offer 2", 1}, {"password 1", 0}, {"password 2", 0}} {
		_, err := s.Enqueue(shaper.Call{Class: message.class}, func(error) { left <- message.text })
		if err != nil {
			log.Fatal(err)
		}
	}
	s.Resume()
	for range 4 {
		fmt.Println(<-left)
	}
	// Output:
	// password 1
	// password 2
	// offer 1
	// offer 2
}
