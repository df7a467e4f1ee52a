package main

import (
	"fmt"
	"io"
)

func writeTable(out io.Writer, c *comparison) {
	l := c.limits
	fmt.Fprintf(out, "%s\n%s\n\n", c.title(), c.terms())
	for _, s := range l.schedules() {
		fmt.Fprintf(out, "%-15s  %s\n", s.name, s.about)
	}

	fmt.Fprintf(out, "\n%-15s  %-5s  %6s  %7s  %5s  %-12s  %12s  %12s  %9s\n",
		"schedule", "use", "passed", "refused", "units", "worst window", "longest wait", "smallest gap", "last")
	for _, r := range c.trials {
		gap, last := "-", "-"
		if r.passed > 1 {
			gap = short(r.gap, l.window)
		}
		if r.passed > 0 {
			last = short(r.last, l.window)
		}
		fmt.Fprintf(out, "%-15s  %-5s  %6d  %7d  %5d  %6d %5s  %12s  %12s  %9s\n",
			r.name, r.use, r.passed, r.refused, r.units, r.worst, r.excess(l.limit),
			short(r.wait, l.window), gap, last)
	}
}

// terms says what all schedules have to keep to.
func (c *comparison) terms() string {
	var units int64
	for _, call := range c.calls {
		units += call.cost
	}
	waits := "calls wait however long it takes"
	if c.patience > 0 {
		waits = fmt.Sprintf("a wait of %s is too long", plain(c.patience))
	}
	return fmt.Sprintf("%d calls of %d units; the limit is %d in %s; %s",
		len(c.calls), units, c.limits.limit, plain(c.limits.window), waits)
}
