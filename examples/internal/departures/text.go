package departures

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// longestBar is the length of the longest bar in characters.
const longestBar = 40

// WriteText writes the summary as text; units are called by the given name.
func (s Summary) WriteText(w io.Writer, units string) {
	if s.Count == 0 {
		fmt.Fprintln(w, "no departures")
		return
	}
	fmt.Fprintf(w, "%-14s p50 %v, p99 %v, max %v, from handing over until it left\n",
		"wait", brief(s.P50), brief(s.P99), brief(s.Longest))
	if rate, ok := s.PerSecond(); ok {
		fmt.Fprintf(w, "%-14s %s %s/s: %d %s left in the %v before the last departure; asked for %v\n",
			"achieved rate", significant(rate), units, s.Paid, units, brief(s.Took), s.rate)
	}
	if s.Count > 1 {
		fmt.Fprintf(w, "%-14s %v between two departures\n", "smallest gap", brief(s.SmallestGap))
	}

	fmt.Fprintf(w, "\n%s per %v\n", units, s.width)
	most := slices.Max(s.rows)
	for i, n := range s.rows {
		row := fmt.Sprintf("%10v  %-*s %d", time.Duration(i)*s.width, longestBar, bar(n, most), n)
		fmt.Fprintln(w, row)
	}
}

// bar draws n on a scale on which most fills the line.
func bar(n, most int64) string {
	length := n
	if most > longestBar {
		// In float64, since the product might not fit an int64.
		length = int64(float64(n) / float64(most) * longestBar)
	}
	if n > 0 {
		length = max(length, 1) // few are not none
	}
	return strings.Repeat("#", int(length))
}

// significant writes f with four digits or, if it has more before the point, those.
func significant(f float64) string {
	if f >= 1000 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.4g", f)
}

// brief rounds d to what is worth reading.
func brief(d time.Duration) time.Duration {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(time.Microsecond)
}
