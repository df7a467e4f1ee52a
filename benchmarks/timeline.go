package main

import (
	"math"
	"slices"
	"time"
)

// timeline compares departures with the ideal timeline, on which one leaves each
// interval after the first. It sorts them.
//
//   - share-of-rate: the departures that came after the first, divided by the
//     intervals that they took;
//   - late-us: departure k after the first, against k intervals after the first. It is
//     negative if the call was early;
//   - gap-error-us: by how much the time between two neighbours is off the interval;
//   - excess-calls: see excess.
func timeline(stamps []time.Time, interval time.Duration) sample {
	slices.SortFunc(stamps, time.Time.Compare)
	first, last := stamps[0], stamps[len(stamps)-1]
	late := make([]float64, len(stamps))
	gaps := make([]float64, len(stamps)-1)
	for k, at := range stamps {
		late[k] = micros(at.Sub(first) - time.Duration(k)*interval)
		if k > 0 {
			gaps[k-1] = math.Abs(micros(at.Sub(stamps[k-1]) - interval))
		}
	}
	slices.Sort(late)
	slices.Sort(gaps)
	return sample{
		{"share-of-rate", float64(len(gaps)) * float64(interval) / float64(last.Sub(first))},
		{"late-p50-us", percentile(late, 50)},
		{"late-p99-us", percentile(late, 99)},
		{"late-max-us", percentile(late, 100)},
		{"gap-error-p50-us", percentile(gaps, 50)},
		{"gap-error-p99-us", percentile(gaps, 99)},
		{"excess-calls", float64(excess(stamps, interval))},
	}
}

// excess looks for the worst closed window, of any length w, and returns how many more
// calls left in it than 1 + floor(w/interval), the number that even spacing allows. The
// stamps are in order.
func excess(stamps []time.Time, interval time.Duration) int64 {
	// Between calls i and j are j-i steps in a window of s[j]-s[i]. With the lead of
	// call k defined as k*interval - s[k], the excess is the rise of the lead from i to
	// j in intervals, rounded up. So the lowest lead so far is all there is to know.
	var lowest, rise time.Duration
	for k, at := range stamps {
		lead := time.Duration(k)*interval - at.Sub(stamps[0])
		lowest = min(lowest, lead)
		rise = max(rise, lead-lowest)
	}
	return int64((rise + interval - 1) / interval)
}
