// Ramp warms a new sender up: it may send a few messages on its first day, and a half more on each
// day after, until it may send all.
//
//	go run ./examples/ramp
//	go run ./examples/ramp -first 5 -full 40 -days 8
//
// The limit is a function of time, and the calls that wait follow it. So that there is something
// to see a day lasts a second (-day).
//
// The exit status is 0 if no day had more than its limit, 1 if one had, and 2 for a bad flag.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// A ramp says how many messages a day there may be.
type ramp struct {
	first, full int64
	day         time.Duration
	days        int
}

// at returns the limit of a day, from 0 on.
func (r ramp) at(day int) int64 {
	limit := r.first
	for ; day > 0 && limit < r.full; day-- {
		limit += (limit + 1) / 2
	}
	return min(limit, r.full)
}

func run(args []string, stdout, stderr io.Writer) int {
	var r ramp
	flags := flag.NewFlagSet("ramp", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Int64Var(&r.first, "first", 10, "messages on the first day")
	flags.Int64Var(&r.full, "full", 100, "messages a day in the end")
	flags.IntVar(&r.days, "days", 5, "days to watch")
	flags.DurationVar(&r.day, "day", time.Second, "how long a day is")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case r.first < 1 || r.full < r.first || r.days < 1 || r.day < time.Millisecond || flags.NArg() > 0:
		fmt.Fprintln(stderr, "ramp: -first, -days and -day must be above 0, -full at least -first, and there is nothing else")
		return 2
	}
	sent, err := r.send()
	if err != nil {
		fmt.Fprintln(stderr, "ramp:", err)
		return 2
	}
	status := 0
	fmt.Fprintln(stdout, "day  limit  sent")
	for day, n := range sent {
		fmt.Fprintf(stdout, "%3d  %5d  %4d\n", day+1, r.at(day), n)
		if n > r.at(day) {
			status = 1
		}
	}
	return status
}

// send sends as much as it may and returns how much that was on each day.
func (r ramp) send() ([]int64, error) {
	// Any 24 hours, and not those of a calendar: a partner's day may begin whenever it likes.
	window, err := scheduler.NewSlidingLog(r.first, r.day)
	if err != nil {
		return nil, err
	}
	pace, err := shaper.NewFrom(window)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	// It just ends: a deadline would be one that the last message of each limit cannot make by
	// the limit of its day, and so is refused at once.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	time.AfterFunc(time.Duration(r.days)*r.day, cancel)
	go func() {
		for day := 1; day < r.days; day++ {
			time.Sleep(time.Until(began.Add(time.Duration(day) * r.day)))
			err := pace.Update(func(s scheduler.Scheduler) error {
				return s.(*scheduler.SlidingLog).SetLimit(time.Now(), r.at(day))
			})
			if err != nil {
				cancel() // it is closed
			}
		}
	}()
	sent := make([]int64, r.days)
	for pace.Wait(ctx) == nil {
		if day := int(time.Since(began) / r.day); day < r.days {
			sent[day]++
		}
	}
	return sent, pace.Close()
}
