package scheduler_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// Pace three calls that all come at once: ask when, wait by your own means, report.
func Example() {
	pace, err := scheduler.NewGCRA(scheduler.PerSecond(3), 1)
	if err != nil {
		log.Fatal(err)
	}
	now := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	for range 3 {
		due := pace.Next(now, 0, 1)
		fmt.Println(due.Sub(now))
		pace.Commit(due, due, 1) // it left on time
	}
	// Output:
	// 0s
	// 333.333334ms
	// 666.666667ms
}

// Any schedule is a meter too.
func ExampleAllow() {
	limit, err := scheduler.NewGCRA(scheduler.PerMinute(60), 2)
	if err != nil {
		log.Fatal(err)
	}
	now := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	for range 3 {
		fmt.Println(scheduler.Allow(limit, now, 1))
	}
	// Output:
	// true 0s
	// true 0s
	// false 1s
}

// Keep several limits at once. A call leaves when all of them allow it.
func ExampleAll() {
	perSecond, err := scheduler.NewGCRA(scheduler.PerSecond(4), 1)
	if err != nil {
		log.Fatal(err)
	}
	perMinute, err := scheduler.NewGCRA(scheduler.PerMinute(60), 1)
	if err != nil {
		log.Fatal(err)
	}
	both := scheduler.All(perSecond, perMinute)
	now := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	for range 3 {
		due := both.Next(now, 0, 1)
		fmt.Println(due.Sub(now))
		both.Commit(due, due, 1)
	}
	// Output:
	// 0s
	// 1s
	// 2s
}

// Save a daily quota on shutdown and load it at the next start.
func ExampleFixedWindow_MarshalBinary() {
	file := filepath.Join(os.TempDir(), fmt.Sprintf("quota-%d", os.Getpid()))
	defer os.Remove(file)
	noon := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)

	quota, err := scheduler.NewFixedWindow(10_000, 24*time.Hour)
	if err != nil {
		log.Fatal(err)
	}
	quota.Commit(noon, noon, 9_999)

	// On shutdown.
	state, err := quota.MarshalBinary()
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(file, state, 0o600); err != nil {
		log.Fatal(err)
	}

	// At the start.
	state, err = os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	var loaded scheduler.FixedWindow
	if err := loaded.UnmarshalBinary(state); err != nil {
		log.Fatal(err)
	}
	fmt.Println(scheduler.Allow(&loaded, noon.Add(time.Hour), 1))
	fmt.Println(scheduler.Allow(&loaded, noon.Add(time.Hour), 1))
	// Output:
	// true 0s
	// false 11h0m0s
}

// A partner that is open by day, with 2 calls in each hour.
func ExampleNewHours() {
	day, err := scheduler.NewHours(time.UTC, 9*time.Hour, 17*time.Hour+30*time.Minute)
	if err != nil {
		log.Fatal(err)
	}
	hourly, err := scheduler.NewFixedWindow(2, time.Hour)
	if err != nil {
		log.Fatal(err)
	}
	both := scheduler.All(day, hourly)
	now := time.Date(2026, time.May, 1, 16, 50, 0, 0, time.UTC)
	for range 5 {
		due := both.Next(now, 0, 1)
		fmt.Println(due.Format("2 January 15:04"))
		both.Commit(due, due, 1)
	}
	// Output:
	// 1 May 16:50
	// 1 May 16:50
	// 1 May 17:00
	// 1 May 17:00
	// 2 May 09:00
}

func ExampleParseRate() {
	for _, text := range []string{"10/s", "300/min", "5/24h", "1/250ms"} {
		r, err := scheduler.ParseRate(text)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r, r.Interval())
	}
	// Output:
	// 10/s 100ms
	// 300/min 200ms
	// 5/24h 4h48m0s
	// 1/250ms 250ms
}
