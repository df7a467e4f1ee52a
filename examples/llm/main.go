// Llm asks a language model a number of questions under two limits, of tokens and of requests,
// where what a question costs is known only from its answer.
//
//	go run ./examples/llm
//	go run ./examples/llm -n 200
//
// A question is charged with its worst case, which is four times what it takes on average. It
// asks once with costs that are settled when the answer tells them, and once without. Every other
// answer is a stream, which tells at its end.
//
// The provider is a small one on loopback, with the wire format of chat completions. It meters
// what questions really took, and refuses them above its limits.
//
// The exit status is 0 if all was answered and nothing refused, 1 if not, and 2 for a bad flag.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
)

const (
	tokensPerSecond   = 10_000
	requestsPerSecond = 100
	atATime           = 5

	prompt    = 50  // tokens of a question
	maxTokens = 950 // of an answer, at the most
	estimate  = prompt + maxTokens

	// A refund is of use only where units can be saved up: what is under way, and one more.
	burst = estimate * (atATime + 1)
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("llm", flag.ContinueOnError)
	flags.SetOutput(stderr)
	n := flags.Int("n", 60, "how many questions to ask")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0 || *n < 1:
		fmt.Fprintf(stderr, "llm: -n %d %q: at least 1, and nothing else\n", *n, flags.Args())
		return 2
	}
	fine := true
	fmt.Fprintln(stdout, "            answered  refused   tokens  seconds  of the limit")
	for _, settled := range []bool{true, false} {
		o, err := askAll(*n, settled)
		if err != nil {
			fmt.Fprintln(stderr, "llm:", err)
			return 1
		}
		o.print(stdout)
		fine = fine && o.answered == *n && o.refused == 0
	}
	if !fine {
		return 1
	}
	return 0
}

// newPace keeps both limits of the provider: tokens, and beside them requests.
func newPace() (*shaper.Shaper, error) {
	requests, err := scheduler.NewGCRA(scheduler.PerSecond(requestsPerSecond), atATime)
	if err != nil {
		return nil, err
	}
	return shaper.New(scheduler.PerSecond(tokensPerSecond), shaper.WithBurst(burst),
		shaper.WithLimits(scheduler.PerCall(requests)))
}

// An outcome is what has become of the questions.
type outcome struct {
	settled           bool
	answered, refused int
	tokens            int
	took              time.Duration
}

func (o outcome) print(w io.Writer) {
	name := "reserved"
	if o.settled {
		name = "settled"
	}
	allowed := burst + tokensPerSecond*o.took.Seconds()
	fmt.Fprintf(w, "%-10s  %8d  %7d  %7d  %7.1f  %10.0f %%\n", name, o.answered, o.refused, o.tokens,
		o.took.Seconds(), 100*float64(o.tokens)/allowed)
}

// askAll asks n questions, a few at a time.
func askAll(n int, settled bool) (outcome, error) {
	p, url, stop, err := openProvider()
	if err != nil {
		return outcome{}, err
	}
	defer stop()
	pace, err := newPace()
	if err != nil {
		return outcome{}, err
	}
	defer pace.Close()
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = atATime
	defer base.CloseIdleConnections()
	client := &http.Client{Transport: transport.New(base, pace,
		transport.WithCost(func(*http.Request) int64 { return estimate }),
		transport.WithMaxInFlight(atATime))}

	var (
		all  sync.WaitGroup
		mu   sync.Mutex
		errs error
	)
	began := time.Now()
	questions := make(chan int)
	for range atATime {
		all.Go(func() {
			for i := range questions {
				if err := ask(client, url, i%2 == 1, settled); err != nil {
					mu.Lock()
					errs = errors.Join(errs, fmt.Errorf("question %d: %w", i, err))
					mu.Unlock()
				}
			}
		})
	}
	for i := range n {
		questions <- i
	}
	close(questions)
	all.Wait()
	o := outcome{settled: settled, took: time.Since(began)}
	o.answered, o.refused, o.tokens = p.score()
	return o, errs
}

// ask asks one question, and settles what it has cost once that is known.
func ask(client *http.Client, url string, stream, settled bool) error {
	ctx := context.Background()
	if settled {
		ctx = transport.ContextWithSettle(ctx)
	}
	tokens, err := complete(ctx, client, url, stream)
	if err != nil || !settled {
		return err // without an answer it stays charged in full
	}
	return transport.Settle(ctx, tokens)
}
