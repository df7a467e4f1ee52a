package departures

import (
	"slices"
	"time"
)

// Remembered is how many waits the percentiles are taken from: those of the latest
// calls. They are kept as they are, so the percentiles are exact.
const Remembered = 1 << 16

// waits is a ring of the latest waits, and the longest of all.
type waits struct {
	ring    []time.Duration
	next    int
	longest time.Duration
}

func (w *waits) add(d time.Duration) {
	w.longest = max(w.longest, d)
	if len(w.ring) < Remembered {
		w.ring = append(w.ring, d)
		return
	}
	w.ring[w.next] = d
	w.next = (w.next + 1) % Remembered
}

// percentiles returns the smallest waits that at least 50 and 99 of 100 do not
// exceed.
func (w *waits) percentiles() (p50, p99 time.Duration) {
	if len(w.ring) == 0 {
		return 0, 0
	}
	sorted := slices.Sorted(slices.Values(w.ring))
	nearestRank := func(percent int) time.Duration {
		return sorted[(len(sorted)*percent+99)/100-1]
	}
	return nearestRank(50), nearestRank(99)
}
