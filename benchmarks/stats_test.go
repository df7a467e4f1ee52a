package main

import (
	"math"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{7}, 7},
		{[]float64{3, 1, 2}, 2},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		if got := median(test.values); got != test.want {
			t.Errorf("median(%v) = %v, want %v", test.values, got, test.want)
		}
	}
	if got := median(nil); !math.IsNaN(got) {
		t.Errorf("median of nothing = %v, want NaN", got)
	}
}

func TestPercentile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(i + 1)
	}
	for _, test := range []struct {
		values  []float64
		p, want float64
	}{
		{hundred, 0, 1},
		{hundred, 50, 50},
		{hundred, 99, 99},
		{hundred, 99.5, 100},
		{hundred, 100, 100},
		{[]float64{1, 2}, 50, 1},
		{[]float64{1, 2}, 51, 2},
	} {
		if got := percentile(test.values, test.p); got != test.want {
			t.Errorf("percentile %v of %d values = %v, want %v", test.p, len(test.values), got, test.want)
		}
	}
	if got := percentile(nil, 50); !math.IsNaN(got) {
		t.Errorf("percentile of nothing = %v, want NaN", got)
	}
}

func TestRatio(t *testing.T) {
	for _, test := range []struct{ ours, theirs, want float64 }{
		{1, 2, 0.5},
		{0, 2, 0},
		{0, 0, 1},
		{-3, -3, 1},
		{1, 0, math.NaN()},
		{-1, 2, math.NaN()},
		{1, -2, math.NaN()},
		{math.NaN(), 2, math.NaN()},
		{1, math.NaN(), math.NaN()},
	} {
		if got := ratio(test.ours, test.theirs); got != test.want && !(math.IsNaN(got) && math.IsNaN(test.want)) {
			t.Errorf("ratio(%v, %v) = %v, want %v", test.ours, test.theirs, got, test.want)
		}
	}
}

// at returns instants in milliseconds after some instant.
func at(ms ...float64) []time.Time {
	stamps := make([]time.Time, len(ms))
	for i, x := range ms {
		stamps[i] = time.Unix(0, int64(x*1e6))
	}
	return stamps
}

func TestExcessIsWhatTheDefinitionSays(t *testing.T) {
	const interval = 10 * time.Millisecond
	for _, test := range []struct {
		name string
		ms   []float64
		want int64
	}{
		{"one", []float64{0}, 0},
		{"even", []float64{0, 10, 20, 30}, 0},
		{"slow", []float64{0, 15, 30}, 0},
		{"a late call and one in time", []float64{0, 13, 20}, 1},
		{"three at once", []float64{0, 0, 0}, 2},
		{"a burst after a pause", []float64{0, 10, 100, 100, 100, 110}, 2},
		{"the worst one comes first", []float64{0, 1, 2, 40, 50, 55}, 2},
	} {
		stamps := at(test.ms...)
		got, naive := excess(stamps, interval), naiveExcess(stamps, interval)
		if got != test.want || naive != test.want {
			t.Errorf("%s: excess %d, by the definition %d, want %d", test.name, got, naive, test.want)
		}
	}
}

// naiveExcess tries all windows that begin and end with a call.
func naiveExcess(stamps []time.Time, interval time.Duration) int64 {
	var worst int64
	for i := range stamps {
		for j := i; j < len(stamps); j++ {
			allowed := 1 + int64(stamps[j].Sub(stamps[i])/interval)
			worst = max(worst, int64(j-i+1)-allowed)
		}
	}
	return worst
}

func TestTimeline(t *testing.T) {
	// Out of order, as goroutines stamp; one call is 2 ms late and one 1 ms early.
	got := timeline(at(0, 20, 12, 29), 10*time.Millisecond)
	want := sample{
		{"share-of-rate", 30.0 / 29},
		{"late-p50-us", 0},
		{"late-p99-us", 2000},
		{"late-max-us", 2000},
		{"gap-error-p50-us", 2000},
		{"gap-error-p99-us", 2000},
		{"excess-calls", 1},
	}
	for i, w := range want {
		if got[i].Unit != w.Unit || math.Abs(got[i].Value-w.Value) > 1e-9 {
			t.Errorf("figure %d is %v, want %v", i, got[i], w)
		}
	}
}
