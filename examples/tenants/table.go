package main

import (
	"fmt"
	"io"
)

// writeTable writes a line for each tenant, and what became of all.
func writeTable(out io.Writer, c *comparison) {
	fmt.Fprintf(out, "%d tenants share %d calls a second for %.0f s; %d calls may wait\n\n", len(c.tenants), perSecond, length.Seconds(), room)
	fmt.Fprintf(out, "%41s", "")
	fmt.Fprintf(out, "  | %-33s  | %s", c.trials[0].name, c.trials[1].name)
	fmt.Fprintf(out, "\n%-10s%7s%7s%8s%9s", "tenant", "weight", "limit", "asked", "ideal")
	for range c.trials {
		fmt.Fprintf(out, "  |%6s%8s%10s%10s", "left", "share", "refused", "longest")
	}
	fmt.Fprintln(out)
	for i, t := range c.tenants {
		fmt.Fprintf(out, "%-10s%7d%5d/s%8d%9.1f", t.name, t.weight, t.limit, c.asked[i], c.ideal[i])
		for j := range c.trials {
			r := c.trials[j].results[i]
			fmt.Fprintf(out, "  |%6d%7.0f%%%10d%8.2f s", r.left, c.share(&c.trials[j], i), r.refused, r.longest.Seconds())
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out)
	for i := range c.trials {
		t := &c.trials[i]
		left := 0
		for _, r := range t.results {
			left += r.left
		}
		worst := c.least(t)
		fmt.Fprintf(out, "%-10s  %d calls left; %s has the least share, %.0f%%\n", t.name, left, c.tenants[worst].name, c.share(t, worst))
	}
	fmt.Fprint(out, "\nlimit: the tenant's own; ideal: what a sharing of a fluid would let leave; share: left, of the\n"+
		"ideal; longest: wait of a call that left. Calls that still wait at the end are in asked only.\n")
}
