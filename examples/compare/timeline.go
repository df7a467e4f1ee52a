package main

import (
	"fmt"
	"io"
	"strings"
)

// columns is how many slots a timeline has at most.
const columns = 72

// writeTimeline draws one row for the arrivals and one for each trial.
func writeTimeline(out io.Writer, c *comparison) {
	a := newAxis(c, columns)
	scale := a.scale(c.limits.limit)
	fmt.Fprintf(out, "\n%-22s  %s\n", "", ruler(&a))
	fmt.Fprintf(out, "%-22s  %s\n", "arrive", row(&a, arrived(c.calls), scale))
	for _, t := range c.trials {
		fmt.Fprintf(out, "%-15s  %-5s  %s\n", t.name, t.use, row(&a, t.outcomes, scale))
	}
	fmt.Fprintf(out, "%-22s  %s\n", "", labels(&a))

	digits := "1 to 9"
	if scale > 1 {
		digits = fmt.Sprintf("1 to 9 times %d (rounded up)", scale)
	}
	fmt.Fprintf(out, "\nunits that leave in each %s: %s, + for more,\n", plain(a.slotLength()), digits)
	fmt.Fprintf(out, "x for none but calls that are refused; a window begins at each |\n")
}

// scale returns how many units a 1 stands for, so that a digit can tell half a limit in
// one column from all of it, and the rate of the limit from twice that.
func (a *axis) scale(limit int64) int64 {
	half := (limit + 19) / 20
	twice := 9 * a.perWindow
	return max(half, (2*limit*a.perSlot+twice-1)/twice)
}

// arrived makes all calls leave when they come.
func arrived(calls []arrival) []outcome {
	outcomes := make([]outcome, len(calls))
	for i, c := range calls {
		outcomes[i] = outcome{arrival: c, left: c.at}
	}
	return outcomes
}

func row(a *axis, outcomes []outcome, scale int64) string {
	units := make([]int64, a.slots)
	refused := make([]bool, a.slots)
	for _, o := range outcomes {
		if o.refused {
			refused[a.slot(o.at)] = true
		} else {
			units[a.slot(o.left)] += o.cost
		}
	}
	cells := make([]byte, a.slots)
	for i, n := range units {
		digit := (n + scale - 1) / scale
		switch {
		case digit > 9:
			cells[i] = '+'
		case digit > 0:
			cells[i] = '0' + byte(digit)
		case refused[i]:
			cells[i] = 'x'
		default:
			cells[i] = '.'
		}
	}
	return string(cells)
}

// ruler marks where windows begin.
func ruler(a *axis) string {
	var b strings.Builder
	for slot := range a.slots {
		if a.isBoundary(slot) {
			b.WriteByte('|')
		} else {
			b.WriteByte(' ')
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// labels writes when slots begin, each below its slot.
func labels(a *axis) string {
	const apart = 2
	var b strings.Builder
	for _, slot := range a.ticks(func(label string) int { return len(label) + apart }) {
		b.WriteString(strings.Repeat(" ", slot-b.Len()))
		b.WriteString(a.label(slot))
	}
	return b.String()
}
