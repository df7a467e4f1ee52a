// Compare sends one pattern of calls through every schedule that states the same
// limit, and shows what each of them makes of it.
//
//	go run ./examples/compare
//	go run ./examples/compare -pattern overload -svg overload.svg
//	go run ./examples/compare -pattern trace -patience 5s
//	go run ./examples/compare -limit 100 -window 1m -burst 20 -in calls.csv
//
// Each schedule is used twice. As a meter it says yes or no to a call when it comes.
// As a pace it says when the call may leave: calls wait in a line, in order, and one
// that would wait for as long as -patience is refused when it comes.
//
// A table tells how much got through, and how much of it in the worst window: a
// partner that allows 10 in 5 seconds may look at any 5 seconds. That number is
// counted from the departures and not taken from the schedules. The timeline below
// it, and the picture with -svg, show when the calls leave. The default pattern, a
// quota just before a boundary of the windows and another one just after it, shows
// most: the fixed window lets twice the limit through, the token bucket keeps its
// burst, and the pacer flattens everything. It also fools the sliding counter when that
// is a pace: it takes the calls of the window before for evenly spread.
//
// The patience of 5s with the trace is that of a line with room for ten.
//
// Nothing here waits and nothing reads a clock: a schedule takes time as an argument,
// so minutes of it cost nothing. The time begins at 0 on a boundary of the windows.
//
// A CSV file has a line of seconds,cost for each call; without a cost it is 1, and a
// header is skipped. The exit status is 0 if all went well, 1 if lines made no sense
// (they are reported and left out), and 2 for a bad flag, an input that cannot be
// read, or an output that cannot be written.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// settings are the flags.
type settings struct {
	limits   limits
	pattern  string
	in       string
	seed     uint64
	patience time.Duration
	svg      string
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	complain := func(err error) { fmt.Fprintln(stderr, "compare:", err) }

	set, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2 // it has been printed
	}
	malformed := false
	calls, err := set.calls(stdin, func(line int, err error) {
		malformed = true
		complain(fmt.Errorf("line %d: %w", line, err))
	})
	if err != nil {
		complain(err)
		return 2
	}
	c, err := compare(set, calls)
	if err != nil {
		complain(err)
		return 2
	}

	var text bytes.Buffer
	writeTable(&text, c)
	writeTimeline(&text, c)
	if _, err := stdout.Write(text.Bytes()); err != nil {
		complain(err)
		return 2
	}
	if set.svg != "" {
		if err := os.WriteFile(set.svg, draw(c), 0o644); err != nil {
			complain(err)
			return 2
		}
	}
	if malformed {
		return 1
	}
	return 0
}

// parse reads the flags. What is wrong with them has been printed when it returns.
func parse(args []string, stderr io.Writer) (settings, error) {
	set := settings{patience: -1}
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Int64Var(&set.limits.limit, "limit", 10, "units that the partner allows in a window")
	flags.DurationVar(&set.limits.window, "window", 5*time.Second, "how long a window is; the rate is limit/window")
	flags.Int64Var(&set.limits.burst, "burst", 10, "units that the buckets let leave at once")
	flags.StringVar(&set.pattern, "pattern", "boundary", "what comes: "+strings.Join(patternNames(), ", "))
	flags.StringVar(&set.in, "in", "", "a CSV `file` of seconds,cost to come instead, - for the standard input")
	flags.Uint64Var(&set.seed, "seed", 1, "of the random numbers of -pattern costs")
	flags.Func("patience", "a `duration`: a call that would wait as long or longer is refused, 0 for none (default: a window and a half)",
		func(text string) (err error) {
			set.patience, err = time.ParseDuration(text)
			if err == nil && set.patience < 0 {
				err = errors.New("must not be negative")
			}
			return err
		})
	flags.StringVar(&set.svg, "svg", "", "a `file` to draw the picture in")
	if err := flags.Parse(args); err != nil {
		return set, err
	}
	err := set.check(flags)
	if err != nil {
		fmt.Fprintln(stderr, "compare:", err)
	}
	if set.patience < 0 {
		// Long enough to see a line go on in the next window, and short enough to
		// see it refuse what does not fit there either.
		set.patience = set.limits.window * 3 / 2
	}
	return set, err
}

func (set *settings) check(flags *flag.FlagSet) error {
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err := set.limits.check(); err != nil {
		return err
	}
	if _, err := findPattern(set.pattern); err != nil {
		return fmt.Errorf("-pattern %w", err)
	}
	if set.in == "" {
		return nil
	}
	var err error
	flags.Visit(func(f *flag.Flag) {
		if f.Name == "pattern" {
			err = fmt.Errorf("-pattern %s and -in %s: only one of them can come", set.pattern, set.in)
		}
	})
	return err
}

// calls returns what comes, in order.
func (set *settings) calls(stdin io.Reader, malformed func(line int, err error)) ([]arrival, error) {
	switch set.in {
	case "":
		p, err := findPattern(set.pattern)
		if err != nil {
			return nil, err
		}
		return p.calls(set.limits, set.seed), nil
	case "-":
		return readCSV(stdin, malformed)
	}
	f, err := os.Open(set.in)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	calls, err := readCSV(f, malformed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", set.in, err)
	}
	return calls, nil
}

// title says what comes.
func (set *settings) title() string {
	switch set.in {
	case "":
	case "-":
		return "calls from the standard input"
	default:
		return "calls from " + set.in
	}
	p, err := findPattern(set.pattern)
	if err != nil {
		return set.pattern
	}
	return set.pattern + ": " + p.about
}
