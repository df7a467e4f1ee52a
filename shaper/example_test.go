package shaper_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// Pace calls at ten per second.
func Example() {
	ctx := context.Background()
	s, err := shaper.New(scheduler.PerSecond(10))
	if err != nil {
		log.Fatal(err)
	}
	for _, message := range []string{"one", "two", "three"} {
		if err := s.Wait(ctx); err != nil {
			log.Fatal(err) // not sent, and no slot used
		}
		fmt.Println("send", message)
	}
	// Output:
	// send one
	// send two
	// send three
}

// A call that could not leave in time is told so at once, and how long it would
// have had to wait.
func ExampleRefusal() {
	s, err := shaper.New(scheduler.PerMinute(1))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Allow())

	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	err = s.Wait(ctx)

	var refusal *shaper.Refusal
	if errors.As(err, &refusal) {
		fmt.Println(refusal.Reason)
		fmt.Println(refusal.Delay.Round(time.Second))
	}
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output:
	// true
	// shaper: wait exceeds the context deadline
	// 1m0s
	// true
}

// Tests that fake time give the Shaper their clock.
func ExampleWithClock() {
	mock := clock.NewMock()
	s, err := shaper.New(scheduler.PerHour(1), shaper.WithClock(mock))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Allow(), s.Allow(), s.Delay())
	mock.Add(time.Hour)
	fmt.Println(s.Allow())
	// Output:
	// true false 1h0m0s
	// true
}

// A partner who says "come back in a minute" holds the whole line.
func ExampleShaper_HoldUntil() {
	mock := clock.NewMock()
	s, err := shaper.New(scheduler.PerSecond(10), shaper.WithClock(mock))
	if err != nil {
		log.Fatal(err)
	}
	s.HoldUntil(mock.Now().Add(time.Minute))
	s.HoldUntil(mock.Now().Add(time.Second)) // an older word that comes late changes nothing
	fmt.Println(s.Delay())
	// Output:
	// 1m0s
}

// Each sender number has a limit of its own.
func ExampleGroup() {
	ctx := context.Background()
	senders, err := shaper.NewGroup[string](scheduler.PerSecond(10), shaper.WithMaxKeys(50_000))
	if err != nil {
		log.Fatal(err)
	}
	for _, sender := range []string{"+15550100", "+15550101", "+15550100"} {
		if err := senders.Wait(ctx, sender); err != nil {
			log.Fatal(err) // not sent; shaper.ErrTooManyKeys if there is no room for a new one
		}
		fmt.Println("send from", sender)
	}
	// Output:
	// send from +15550100
	// send from +15550101
	// send from +15550100
}

// Gold customers have more than others. The function is called when a key is made.
func ExampleWithRates() {
	gold := map[int]bool{7: true}
	customers, err := shaper.NewGroup[int](scheduler.PerMinute(10),
		shaper.WithRates(func(customer int) scheduler.Rate {
			if gold[customer] {
				return scheduler.PerMinute(60)
			}
			return scheduler.PerMinute(10)
		}))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(customers.Allow(7), customers.Delay(7).Round(time.Second))
	fmt.Println(customers.Allow(8), customers.Delay(8).Round(time.Second))
	// Output:
	// true 1s
	// true 6s
}
