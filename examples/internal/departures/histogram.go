package departures

import (
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// maxRows bounds the histogram, on the screen and in memory.
const maxRows = 20

// A histogram counts the units that left in each of at most maxRows intervals of
// equal width. How long it will take is not known beforehand, so whenever a
// departure lies beyond the last row, the width doubles.
type histogram struct {
	width time.Duration
	lead  time.Duration
	rows  [maxRows]int64
	used  int
}

// newHistogram has rows of five emission intervals at first, but no less than a
// tenth of a second.
func newHistogram(rate scheduler.Rate) histogram {
	return histogram{
		width: max(rate.For(5), 100*time.Millisecond),
		// The first row begins half an interval before the first departure. Units
		// that leave evenly would otherwise fall on the edges of the rows, and it
		// would be left to chance in which of two they are counted.
		lead: rate.Interval() / 2,
	}
}

// add counts units that left at a time after the first departure.
func (h *histogram) add(after time.Duration, units int64) {
	after += h.lead
	for after/h.width >= maxRows {
		h.fold()
	}
	row := int(after / h.width)
	h.rows[row] += units
	h.used = max(h.used, row+1)
}

// fold makes one row of every two.
func (h *histogram) fold() {
	h.width *= 2
	h.used = (h.used + 1) / 2
	for i := range maxRows / 2 {
		h.rows[i] = h.rows[2*i] + h.rows[2*i+1]
	}
	clear(h.rows[maxRows/2:])
}
