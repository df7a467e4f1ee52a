// Payments charges a number of payments, at 25 a second and with no more than five
// under way, and then sends one of them again.
//
//	go run ./examples/payments
//	go run ./examples/payments -n 200 -rate 20/s
//	go run ./examples/payments -rate 100/s
//
// It shows what makes it safe to send a payment twice: an Idempotency-Key that
// belongs to the payment and not to the attempt. The partner answers the repetition
// as it answered the original and charges nothing. A paced client can still need
// that: an answer may get lost, and then the caller cannot know whether the payment was made.
//
// Without -url the partner is a small one on loopback. It refuses the 26th call in a
// second and the sixth at a time, so the last of the commands above is refused a
// part of its payments. Ctrl-C stops: what has left is waited for. A second one
// kills.
//
// The exit status is 0 if everything was charged once, 1 if not, and 2 for a bad
// flag.
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
)

// atATime is how many payments may be under way.
const atATime = 5

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first Ctrl-C the next one does what it does by default.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

type settings struct {
	n    int
	rate scheduler.Rate
	url  string
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var set settings
	switch err := set.parse(args, stderr); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	complain := func(err error) int {
		fmt.Fprintln(stderr, "payments:", err)
		return 2
	}

	url, stop, err := target.Open(set.url, partner.Config{Payments: partner.Endpoint{
		// The slack is for a busy machine, which may deliver calls closer together
		// than they left.
		Limit:       partner.Limit{Units: 25, Window: time.Second, Slack: 200 * time.Millisecond},
		Concurrency: atATime,
		Latency:     80 * time.Millisecond,
	}})
	if err != nil {
		return complain(err)
	}
	defer stop()

	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = atATime
	defer base.CloseIdleConnections()
	log := departures.NewLog(set.rate)
	client, err := call.NewClient(base, log, set.rate)
	if err != nil {
		return complain(err)
	}

	c := charger{client: client, url: url + "/v1/payments", stderr: stderr}
	c.chargeAll(ctx, set.n)
	c.report(stdout)
	fine := c.charged == set.n
	fmt.Fprintln(stdout)
	log.Summary().WriteText(stdout, "payments")
	fmt.Fprintln(stdout)
	fine = c.repeat(ctx, stdout) && fine
	fine = printScore(ctx, base, url, stdout) && fine
	if !fine {
		return 1
	}
	return 0
}

// parse reads the flags. What is wrong with them has been printed when it returns.
func (set *settings) parse(args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("payments", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&set.n, "n", 50, "how many payments to charge")
	flags.TextVar(&set.rate, "rate", scheduler.PerSecond(25), "payments that leave per period, such as 25/s")
	flags.StringVar(&set.url, "url", "", "base `URL` of the partner (default: one on loopback)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case set.n < 1:
		err = fmt.Errorf("-n %d: must be at least 1", set.n)
	}
	if err != nil {
		fmt.Fprintln(stderr, "payments:", err)
	}
	return err
}
