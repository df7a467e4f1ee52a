// Benchmarks compares sluice with other Go limiters and writes what it finds to a
// file.
//
//	go run ./benchmarks                  # everything, in less than fifteen minutes on two cores
//	go run ./benchmarks -run Pacing      # the scenarios whose name matches
//	go run ./benchmarks -quick -out -    # a smoke run of seconds, to standard output
//
// A scenario measures one thing of one subject, a library; its doc says what and how.
// A trial, one subject in one scenario, is a process of its own, so that no heap,
// goroutine or timer of one library is there when the next is measured. In each round
// trials alternate: peer, ours, peer, ours. A ratio is ours to the peer's next to it in
// the same round, and the table shows the median over the rounds. Scenarios that take
// seconds run in at most five rounds, and in three if no target is about them; one trial
// of ours stands between two peers there.
//
// Targets are a table of their own: what sluice is to reach, and whether it did.
//
// Before a round the command waits up to some seconds for a quiet machine, and before
// each scenario it looks again: /proc/stat tells what share of the CPUs is busy. During
// a trial it counts what others use. What was measured while it was not quiet is marked
// as noisy.
//
// With -gate it makes a few checks with wide margins in less than a minute, for CI: what is
// slower than a peer there, or allocates, has become so by a change.
//
// The raw text is in the format of go test -bench, for benchstat. The same scenarios
// are ordinary benchmarks as well:
//
//	go test ./benchmarks -run '^$' -bench . -count 7
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("benchmarks", flag.ContinueOnError)
	flags.SetOutput(stderr)
	out := flags.String("out", "benchmarks/RESULTS.md", "the `file` to write; - is standard output")
	rounds := flags.Int("rounds", 7, "how many `rounds`; scenarios of seconds run in at most 5 or 3")
	pattern := flags.String("run", "", "only scenarios whose name matches the `regexp`")
	quick := flags.Bool("quick", false, "a smoke run of seconds: one round, and no figure means anything")
	check := flags.Bool("gate", false, "check what no change may break, with wide margins, in place of all else")
	size := flags.String("scale", full.name, "of a trial: full, quick or brief (used by the command itself)")
	trial := flags.String("trial", "", "run one trial, `scenario,subject`, and print its sample (used by the command itself)")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	scale := full
	if *quick {
		scale, *rounds = smoke, 1
	}
	var err error
	switch {
	case *trial != "":
		err = runTrial(*trial, scales[*size], stdout)
	case *check:
		err = gate(stdout)
	default:
		err = compare(*out, *rounds, *pattern, scale, "go run ./benchmarks "+strings.Join(args, " "), stdout, stderr)
	}
	if err != nil {
		fmt.Fprintln(stderr, "benchmarks:", err)
		return 1
	}
	return 0
}

// compare runs all rounds and writes the report.
func compare(out string, rounds int, pattern string, scale scale, command string, stdout, progress io.Writer) error {
	chosen, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	if rounds < 1 {
		return fmt.Errorf("rounds %d: must be at least 1", rounds)
	}
	r := report{machine: lookAround(), command: strings.TrimSpace(command), quick: scale == smoke, date: time.Now().UTC()}
	for _, s := range scenarios() {
		if chosen.MatchString(s.name) {
			r.results = append(r.results, result{scenario: s})
		}
	}
	if len(r.results) == 0 {
		return fmt.Errorf("no scenario matches %q", pattern)
	}
	for round := range rounds {
		awaitQuiet(scale.patience)
		for i := range r.results {
			if !r.results[i].scenario.takesPart(round) {
				continue
			}
			fmt.Fprintf(progress, "round %d of %d: %s\n", round+1, rounds, r.results[i].scenario.name)
			if err := r.results[i].measure(round, scale); err != nil {
				return err
			}
		}
	}
	r.took = time.Since(r.date)
	if out == "-" {
		return r.write(stdout)
	}
	var text bytes.Buffer
	if err := r.write(&text); err != nil {
		return err
	}
	return os.WriteFile(out, text.Bytes(), 0o644)
}
