// Tenants shares an account of 100 calls a second among 50 tenants, and shows what each of
// them gets: by weight, and in one plain line. One tenant is noisy.
//
//	go run ./examples/tenants
//	go run ./examples/tenants -noisy 0
//	go run ./examples/tenants -burst 2
//	go run ./examples/tenants -svg tenants.svg
//
// Each tenant has a plan: a weight, a limit of its own, and how much it tries to send. All
// together they try to send 187 calls a second, 80 of them the noisy one.
//
// The ideal share of a tenant is computed by a small program of its own that serves all
// tenants at once, as if calls were a fluid; it knows nothing of the line. By weight, the
// calls are those of keys under an account (shaper.Under, shaper.WithWeights), each of which
// has its own limit besides. In one line, they are calls of the account itself: first come,
// first out, and the noisy tenant's calls are most of the line.
//
// By weight, tenants get what is theirs, and the noisy one gets what the others leave. Only
// those that try to send more than their own limit get less than they might: while such a
// tenant waits for its turn, its own limit goes unused, as its burst is 1. With a burst of 2 it
// may catch up.
//
// Nothing here waits. The calls wait by Enqueue, without a goroutine, and the time is that of
// a clock that jumps from one thing to do to the next; see clock.go.
//
// The exit status is 0 if all went well, and 2 for a bad flag or an output that cannot be
// written.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// settings are the flags.
type settings struct {
	noisy float64
	burst int
	seed  uint64
	svg   string
}

func run(args []string, stdout, stderr io.Writer) int {
	set, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2 // it has been printed
	}
	if err := set.run(stdout); err != nil {
		fmt.Fprintln(stderr, "tenants:", err)
		return 2
	}
	return 0
}

func (set *settings) run(stdout io.Writer) error {
	c, err := compare(set)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	writeTable(&text, c)
	if _, err := stdout.Write(text.Bytes()); err != nil {
		return err
	}
	if set.svg == "" {
		return nil
	}
	return os.WriteFile(set.svg, draw(c), 0o644)
}

// parse reads the flags. What is wrong with them has been printed when it returns.
func parse(args []string, stderr io.Writer) (settings, error) {
	var set settings
	flags := flag.NewFlagSet("tenants", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Float64Var(&set.noisy, "noisy", 80, "calls a second that the noisy tenant tries to send")
	flags.IntVar(&set.burst, "burst", 1, "of each tenant's own limit")
	flags.Uint64Var(&set.seed, "seed", 1, "of the random numbers that say when calls come")
	flags.StringVar(&set.svg, "svg", "", "a `file` to draw the picture in")
	if err := flags.Parse(args); err != nil {
		return set, err
	}
	err := set.check(flags)
	if err != nil {
		fmt.Fprintln(stderr, "tenants:", err)
	}
	return set, err
}

func (set *settings) check(flags *flag.FlagSet) error {
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	const least, most = .1, 10_000
	if n := set.noisy; n != 0 && !(n >= least && n <= most) {
		return fmt.Errorf("-noisy %v: must be 0, or from %v to %v", n, least, most)
	}
	const largest = 100
	if set.burst < 1 || set.burst > largest {
		return fmt.Errorf("-burst %d: must be from 1 to %d", set.burst, largest)
	}
	return nil
}
