package shaper_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
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
	// shaper: wait exceeds the deadline
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

// A partner that says "come back in a minute" holds the whole line.
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

// A one-time password does not wait behind a campaign.
func ExampleWithClass() {
	ctx := context.Background()
	s, err := shaper.New(scheduler.PerSecond(10), shaper.WithClasses(2, time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	urgent := shaper.WithClass(ctx, 0) // passes through an http.Client, too
	if err := s.Wait(urgent); err != nil {
		log.Fatal(err)
	}
	fmt.Println("send the one-time password")
	// Output:
	// send the one-time password
}

// Each sender number may send one message a minute, and three in any 15 minutes.
func ExampleWithSchedules() {
	mock := clock.NewMock()
	senders, err := shaper.NewGroup[string](scheduler.PerMinute(1), shaper.WithClock(mock),
		shaper.WithSchedules(func(string) (scheduler.Scheduler, error) {
			return scheduler.NewSlidingLog(3, 15*time.Minute)
		}))
	if err != nil {
		log.Fatal(err)
	}
	for range 4 {
		delay := senders.Delay("+15550100")
		fmt.Println(delay)
		mock.Add(delay)
		senders.Allow("+15550100")
	}
	// Output:
	// 0s
	// 1m0s
	// 1m0s
	// 13m0s
}

// A waiting call on a mock's time: let it join the line, and then let time pass.
func ExampleWithClock_wait() {
	ctx := context.Background()
	mock := clock.NewMock()
	s := shaper.MustNew(scheduler.PerMinute(1), shaper.WithClock(mock))
	fmt.Println(s.Wait(ctx))

	left := make(chan error)
	go func() { left <- s.Wait(ctx) }()
	for s.Stats().Waiting == 0 {
		time.Sleep(time.Millisecond)
	}
	fmt.Println("a newcomer would wait", s.Delay())
	mock.Add(time.Minute)
	fmt.Println(<-left)
	// Output:
	// <nil>
	// a newcomer would wait 2m0s
	// <nil>
}

// Ten a second, and no more than three in any hour: a call leaves when both allow it.
func ExampleWithLimits() {
	hourly, err := scheduler.NewSlidingLog(3, time.Hour)
	if err != nil {
		log.Fatal(err)
	}
	mock := clock.NewMock()
	s, err := shaper.New(scheduler.PerSecond(10), shaper.WithLimits(hourly), shaper.WithClock(mock))
	if err != nil {
		log.Fatal(err)
	}
	for range 4 {
		fmt.Println(s.Delay())
		mock.Add(s.Delay())
		s.Allow()
	}
	// Output:
	// 0s
	// 100ms
	// 100ms
	// 59m59.8s
}

// A quota for the calendar day, with no pace within it. The Shaper owns the schedule.
func ExampleNewFrom() {
	daily, err := scheduler.NewFixedWindow(2, 24*time.Hour)
	if err != nil {
		log.Fatal(err)
	}
	mock := clock.NewMock()
	mock.Set(time.Date(2026, time.January, 1, 22, 0, 0, 0, time.UTC))
	s, err := shaper.NewFrom(daily, shaper.WithClock(mock))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Allow(), s.Allow(), s.Allow(), s.Delay())
	// Output:
	// true true false 2h0m0s
}

// At most two at a time, at any rate. Each Acquire needs a Release.
func ExampleShaper_Acquire() {
	ctx := context.Background()
	s := shaper.MustNew(scheduler.PerSecond(1000), shaper.WithBurst(10), shaper.WithMaxInFlight(2))
	for range 2 {
		if err := s.Acquire(ctx, 1); err != nil {
			log.Fatal(err)
		}
	}
	third := make(chan error)
	go func() { third <- s.Acquire(ctx, 1) }()
	for s.Stats().Waiting == 0 {
		time.Sleep(time.Millisecond)
	}
	fmt.Println("in flight:", s.Stats().InFlight)
	s.Release()
	fmt.Println(<-third)
	s.Release()
	s.Release()
	fmt.Println("in flight:", s.Stats().InFlight)
	// Output:
	// in flight: 2
	// <nil>
	// in flight: 0
}

// Do acquires, calls the function and releases, also if the function panics.
func ExampleShaper_Do() {
	s := shaper.MustNew(scheduler.PerSecond(10), shaper.WithMaxInFlight(2))
	err := s.Do(context.Background(), func(ctx context.Context) error {
		fmt.Println("in flight:", s.Stats().InFlight)
		return errors.New("the partner has hung up")
	})
	fmt.Println(err)
	fmt.Println("in flight:", s.Stats().InFlight)
	// Output:
	// in flight: 1
	// the partner has hung up
	// in flight: 0
}

// A partner grants a higher rate. What is owed stays owed, in units.
func ExampleShaper_SetRate() {
	mock := clock.NewMock()
	s := shaper.MustNew(scheduler.PerMinute(1), shaper.WithClock(mock))
	fmt.Println(s.Allow(), s.Delay())
	if err := s.SetRate(scheduler.PerMinute(60)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Delay())
	fmt.Println(s.SetRate(scheduler.PerSecond(0)))
	// Output:
	// true 1m0s
	// 1s
	// shaper: scheduler: rate 0/s: units must be at least 1 (to stop traffic, pause it)
}

// At the end of a program, calls that wait leave at their pace, and new ones are refused.
func ExampleShaper_Shutdown() {
	ctx := context.Background()
	s := shaper.MustNew(scheduler.PerSecond(100))
	fmt.Println(s.Wait(ctx))
	left := make(chan error, 1)
	go func() { left <- s.Wait(ctx) }()
	for s.Stats().Left+s.Stats().Waiting < 2 {
		time.Sleep(time.Millisecond)
	}

	ending, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	fmt.Println(s.Shutdown(ending))
	fmt.Println(<-left)
	fmt.Println(s.Wait(ctx))
	// Output:
	// <nil>
	// <nil>
	// <nil>
	// shaper: closed (cost 1)
}

// A metric counts refusals by reason.
func ExampleRefusal_Label() {
	refused := map[string]int{}
	s := shaper.MustNew(scheduler.PerMinute(1), shaper.WithMaxDelay(time.Second))
	for range 3 {
		var refusal *shaper.Refusal
		if err := s.Wait(context.Background()); errors.As(err, &refusal) {
			refused[refusal.Label()]++
		}
	}
	fmt.Println(refused)
	// Output:
	// map[max_delay:2]
}

// A limit of package scope. Its arguments are constants, so there is no error to handle.
var partner = shaper.MustNew(scheduler.PerSecond(10))

func ExampleMustNew() {
	fmt.Println(partner.Wait(context.Background()))
	// Output:
	// <nil>
}

// A daily quota survives a crash: its state is saved after each call, or each minute, and a
// new process begins with what was saved last.
func ExampleShaper_MarshalBinary() {
	dir, err := os.MkdirTemp("", "quota")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "partner")

	for range 2 {
		s, err := start(file)
		if err != nil {
			log.Fatal(err)
		}
		for range 3 {
			fmt.Println(s.Allow())
			if err := save(file, s); err != nil {
				log.Fatal(err)
			}
		}
		fmt.Println("the process is killed")
	}
	// Output:
	// true
	// true
	// true
	// the process is killed
	// true
	// true
	// false
	// the process is killed
}

// start returns a Shaper that goes on where the process before has ended.
func start(file string) (*shaper.Shaper, error) {
	s, err := shaper.New(scheduler.PerDay(5), shaper.WithBurst(5))
	if err != nil {
		return nil, err
	}
	state, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil // the very first
	}
	if err != nil {
		return nil, err
	}
	return s, s.UnmarshalBinary(state)
}

// save replaces the file as a whole: a crash leaves the old one or the new one, and never
// a half.
func save(file string, s *shaper.Shaper) error {
	state, err := s.MarshalBinary()
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file))
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // in vain once it has its name
	_, err = temp.Write(state)
	err = errors.Join(err, temp.Sync(), temp.Close())
	if err != nil {
		return err
	}
	return os.Rename(temp.Name(), file)
}
