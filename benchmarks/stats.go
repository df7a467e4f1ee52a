package main

import (
	"math"
	"slices"
)

// median returns the middle of the values, or the mean of the two in the middle. It is
// NaN without values.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// percentile returns the smallest of the sorted values that at least p percent of them
// do not exceed (the nearest rank). It is NaN without values.
func percentile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

// ratio returns ours / theirs. Two that are equal have ratio 1, zeros too; otherwise it
// is NaN if one is negative, missing or theirs is 0: nothing can be said then.
func ratio(ours, theirs float64) float64 {
	switch {
	case ours == theirs:
		return 1
	case !(ours >= 0) || !(theirs > 0):
		return math.NaN()
	}
	return ours / theirs
}
