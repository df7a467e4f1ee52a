package main

import (
	_ "embed"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// A report is RESULTS.md.
type report struct {
	machine machine
	command string
	quick   bool
	date    time.Time
	took    time.Duration
	results []result
}

//go:embed bias.md
var bias string

func (r *report) write(w io.Writer) error {
	var b strings.Builder
	r.writeHead(&b)
	r.writeTargets(&b)
	r.writeTables(&b)
	b.WriteString("\n" + bias)
	r.writeRaw(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *report) writeHead(b *strings.Builder) {
	m := r.machine
	b.WriteString("# Results\n\n")
	if r.quick {
		b.WriteString("**A smoke run: no figure means anything.**\n\n")
	}
	b.WriteString("| | |\n|---|---|\n")
	for _, row := range [][2]string{
		{"Command", "`" + r.command + "`"},
		{"Date", r.date.Format("2006-01-02 15:04 MST")},
		{"Took", r.took.Round(time.Second).String()},
		{"Commit", m.commit},
		{"Go", m.goes},
		{"CPU", fmt.Sprintf("%s, %d cores", m.cpu, m.cores)},
		{"System", m.system},
		{"Peers", strings.Join(m.peers, ", ")},
	} {
		fmt.Fprintf(b, "| %s | %s |\n", row[0], row[1])
	}
}

const legend = `
Each cell is the median over the rounds. In brackets: ours divided by the peer's, as the
median of the ratios within each round, in which the two ran next to each other. Below
1.00 ours is less, which is better for everything but a share-of-rate and reached. A
dash means that there is no figure, or that no ratio can be given: something is negative,
or theirs is 0. The first column is always a variant of ours. A row
that is marked "noisy" has rounds in which more than %.0f %% of the CPUs was busy before,
or was used by other processes during one of the trials.
What the units mean stands in the file of each scenario.
`

func (r *report) writeTables(b *strings.Builder) {
	b.WriteString("\n## Medians and ratios\n")
	fmt.Fprintf(b, legend, quiet*100)
	for i := range r.results {
		now := &r.results[i]
		if i == 0 || !sameTable(&r.results[i-1], now) {
			names := now.scenario.names()
			fmt.Fprintf(b, "\n### %s\n\n| | | %s |\n|---|---|%s\n",
				family(now.scenario.name), strings.Join(names, " | "), strings.Repeat("---|", len(names)))
		}
		writeRows(b, now)
	}
}

// writeRows writes a row for each figure.
func writeRows(b *strings.Builder, r *result) {
	_, label, _ := strings.Cut(r.scenario.name, "/")
	label = strings.ReplaceAll(label, "/", ", ")
	if n := r.noisy(); n > 0 {
		label += fmt.Sprintf(" (noisy: %d of %d)", n, len(r.rounds))
	}
	for _, unit := range r.units() {
		fmt.Fprintf(b, "| %s | %s | %s |", label, unit, number(r.value(0, unit)))
		for peer := 1; peer < len(r.scenario.subjects); peer++ {
			fmt.Fprintf(b, " %s (%s) |", number(r.value(peer, unit)), quotient(r.ratio(peer, unit)))
		}
		b.WriteString("\n")
	}
}

func (r *report) writeRaw(b *strings.Builder) {
	b.WriteString("\n## Raw text\n\nOne line per trial, in the order in which they ran. others-% is the share of the CPUs\nthat other processes used meanwhile.\n\n```\n")
	fmt.Fprintf(b, "goos: %s\ncpu: %s\n", strings.Fields(r.machine.system + " ")[0], r.machine.cpu)
	for _, res := range r.results {
		for _, round := range res.rounds {
			fmt.Fprintf(b, "# round %d, %s of the CPUs busy before\n", round.number+1, percent(round.busy))
			for _, t := range round.trials {
				b.WriteString(line(res.scenario, t))
			}
		}
	}
	b.WriteString("```\n")
}

// line returns a trial in the format of go test -bench.
func line(s scenario, t trial) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Benchmark%s/lib=%s 1", s.name, s.subjects[t.subject].name)
	for _, f := range t.found {
		fmt.Fprintf(&b, " %s %s", number(f.Value), f.Unit)
	}
	if !math.IsNaN(t.others) {
		fmt.Fprintf(&b, " %.0f others-%%", 100*t.others)
	}
	b.WriteString("\n")
	return b.String()
}

// family returns the part of a scenario's name that says what is measured.
func family(name string) string {
	f, _, _ := strings.Cut(name, "/")
	return f
}

// number writes a value with three digits or more.
func number(v float64) string {
	switch size := math.Abs(v); {
	case math.IsNaN(v):
		return "–"
	case size >= 100 || v == 0:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case size >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case size >= 0.01:
		return strconv.FormatFloat(v, 'f', 3, 64)
	default:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
}

func quotient(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	if v > 0 && v < 0.1 {
		return strconv.FormatFloat(v, 'f', 3, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

func percent(v float64) string {
	if math.IsNaN(v) {
		return "an unknown share"
	}
	return strconv.FormatFloat(100*v, 'f', 0, 64) + " %"
}
