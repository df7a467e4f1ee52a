// Sms sends the text messages of a CSV file, in the order of the file and at a pace
// that the partner bears.
//
//	go run ./examples/sms
//	go run ./examples/sms -rate 25/s -in messages.csv
//	generate | go run ./examples/sms -in - -url https://sms.example
//
// It shows how an http.Client gets its pace: by a transport over a shaper. Partners
// count the parts of a message, so that is what a message costs. Without -url the
// partner is a small one on loopback; it takes parts at the same rate, evenly
// spaced, and refuses what comes too early. With -rate unlimited nothing is paced, and
// it refuses what goes beyond 10 a second.
//
// A record is to,text; the text may be quoted and have several lines, and a header
// is skipped. A line that makes no sense is reported and skipped. Ctrl-C stops: what
// has left is waited for, and what has not is listed. A second one kills.
//
// The exit status is 0 if everything was sent, 1 if anything was refused, failed,
// malformed or left unsent, and 2 for a bad flag or an input that cannot be read.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/sluice-go/sluice/examples/internal/call"
	"github.com/sluice-go/sluice/examples/internal/departures"
	"github.com/sluice-go/sluice/examples/internal/target"
	"github.com/sluice-go/sluice/internal/partner"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first Ctrl-C the next one does what it does by default.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

type settings struct {
	in      string
	rate    scheduler.Rate
	url     string
	from    string
	workers int
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var set settings
	switch err := set.parse(args, stderr); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	complain := func(err error) int {
		fmt.Fprintln(stderr, "sms:", err)
		return 2
	}

	in, err := openInput(set.in, stdin)
	if err != nil {
		return complain(err)
	}
	defer in.close()
	url, stop, err := target.Open(set.url, partner.Config{SMS: partner.Endpoint{
		Limit:   limit(set.rate),
		Latency: 20 * time.Millisecond,
	}})
	if err != nil {
		return complain(err)
	}
	defer stop()

	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = set.workers
	defer base.CloseIdleConnections()
	log := departures.NewLog(set.rate)
	client, err := call.NewClient(base, log, set.rate, shaper.WithTolerance(tolerance(set.rate)))
	if err != nil {
		return complain(err)
	}

	s := sender{
		client:  client,
		url:     url + "/v1/messages",
		from:    set.from,
		workers: set.workers,
		console: newConsole(stdout, stderr, in.size),
	}
	unread := s.send(ctx, in)
	s.console.end()
	s.tally.report(stdout, log.Summary())
	switch {
	case unread != nil:
		return complain(fmt.Errorf("the rest of the input cannot be read: %w", unread))
	case !s.tally.complete():
		return 1
	}
	return 0
}

// parse reads the flags. What is wrong with them has been printed when it returns.
func (set *settings) parse(args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("sms", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&set.in, "in", "", "the CSV `file` to send, - for the standard input (default: a sample)")
	flags.TextVar(&set.rate, "rate", scheduler.PerSecond(10), "parts that leave per period, such as 10/s, 300/min, 1/250ms or unlimited")
	flags.StringVar(&set.url, "url", "", "base `URL` of the partner (default: one on loopback that takes no more than the rate)")
	flags.StringVar(&set.from, "from", "sluice", "the sender")
	flags.IntVar(&set.workers, "workers", 16, "how many messages that have left may wait for their answers")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case set.workers < 1 || set.workers > 1000:
		err = fmt.Errorf("-workers %d: must be from 1 to 1000", set.workers)
	}
	if err != nil {
		fmt.Fprintln(stderr, "sms:", err)
	}
	return err
}

// limit is what the partner on loopback enforces: the rate, evenly spaced. It puts
// up with calls that are half an interval early, at most 100 ms: some of that is for
// the tolerance of the line and the rest for the way to the partner, which is not
// equally long for every call on a machine that has other things to do. Intervals
// too short for that are enforced by the second, as partners do.
//
// Without a rate the partner keeps to its own, 10 a second, and it shows what comes
// of not pacing.
func limit(rate scheduler.Rate) partner.Limit {
	if rate == scheduler.Unlimited {
		return partner.Limit{}
	}
	if interval := rate.Interval(); interval >= 40*time.Millisecond {
		return partner.Limit{
			Units:  rate.Units(),
			Window: rate.Period(),
			Even:   true,
			Slack:  min(interval/2, 100*time.Millisecond),
		}
	}
	second := int64(time.Second / rate.Interval())
	window := rate.For(second)
	return partner.Limit{Units: second, Window: window, Slack: window / 10}
}

// tolerance is how late a departure may be without those after it being put off,
// which brings them that much closer to it. The usual 5 ms are too many for a
// partner that wants a call every 10 ms and not sooner.
func tolerance(rate scheduler.Rate) time.Duration {
	interval := rate.Interval()
	if interval == 0 {
		return 0
	}
	return min(interval/4, 5*time.Millisecond)
}
