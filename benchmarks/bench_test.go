package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// The scenarios as ordinary benchmarks, one operation being a decision, a departure, a
// cancelled line, a change or a request. The memory of waiting calls and keys is missing:
// it needs a process that is thrown away. So is what needs a million keys.

func BenchmarkAllow(b *testing.B)     { benchmarkDecision(b, decisions[0]) }
func BenchmarkReadyWait(b *testing.B) { benchmarkDecision(b, decisions[1]) }

func benchmarkDecision(b *testing.B, d decision) {
	for _, goroutines := range contention {
		b.Run(fmt.Sprintf("goroutines=%d", goroutines), func(b *testing.B) {
			each(b, choose(subjects, d.can), func(b *testing.B, s subject) {
				runDecisions(b, d.of(s.ready()), goroutines)
			})
		})
	}
}

func BenchmarkTransport(b *testing.B) {
	for _, base := range bases {
		b.Run("base="+base.name, func(b *testing.B) {
			rt, url, stop := base.start()
			defer stop()
			b.Run("lib=none", func(b *testing.B) { runDecisions(b, requests(rt, url), 1) })
			each(b, choose(subjects, isWaiter), func(b *testing.B, s subject) {
				runDecisions(b, requests(wrap(s, rt), url), 1)
			})
		})
	}
}

func BenchmarkBlocked(b *testing.B) {
	for _, line := range lines {
		b.Run(strings.TrimPrefix(line.name(), "Blocked/"), func(b *testing.B) {
			each(b, choose(subjects, canPace), func(b *testing.B, s subject) {
				l := s.pace(line.rate(), line.callers)
				b.ReportAllocs()
				b.ResetTimer()
				u := startUsage()
				departTogether(l, line.callers, b.N, func() {})
				u.stop()
				b.ReportMetric(micros(u.cpu)/float64(b.N), "cpu-us/departure")
			})
		})
	}
}

func BenchmarkPacing(b *testing.B) {
	for _, hertz := range []int{100, 1_000, 5_000, 20_000} {
		b.Run(fmt.Sprintf("rate=%d", hertz), func(b *testing.B) {
			each(b, append(choose(subjects, canPace), precise), func(b *testing.B, s subject) {
				r := perSecond(hertz)
				var log departures
				departTogether(s.pace(r, 64), 64, b.N+1, log.add)
				for _, f := range timeline(log.all(), r.interval()) {
					b.ReportMetric(f.Value, f.Unit)
				}
			})
		})
	}
}

func BenchmarkCancel(b *testing.B) {
	const calls = 10_000
	b.Run(fmt.Sprintf("calls=%d", calls), func(b *testing.B) {
		each(b, cancelScenario().subjects, func(b *testing.B, s subject) {
			var cancelling float64
			for range b.N {
				took, _, err := cancelAll(s.pace(standstill, calls), calls)
				if err != nil {
					b.Fatal(err)
				}
				cancelling += micros(took) / 1e3
			}
			b.ReportMetric(cancelling/float64(b.N), "wall-ms") // ns/op has getting there in it
		})
	})
}

func BenchmarkRateChange(b *testing.B) {
	const calls = 10_000
	b.Run(fmt.Sprintf("calls=%d", calls), func(b *testing.B) {
		each(b, choose(subjects, canSetRate), func(b *testing.B, s subject) {
			l := s.pace(standstill, calls)
			line, err := standInLine(l, calls, func() {})
			if err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			changeRates(l, b.N)
			b.StopTimer()
			line.disperse()
		})
	})
}

// each runs a benchmark for each subject.
func each(b *testing.B, subjects []subject, f func(*testing.B, subject)) {
	for _, s := range subjects {
		b.Run("lib="+s.name, func(b *testing.B) { f(b, s) })
	}
}

func runDecisions(b *testing.B, op func() bool, goroutines int) {
	b.ReportAllocs()
	b.ResetTimer()
	ops := slices.Repeat([]func() bool{op}, goroutines)
	if _, _, yes := decide(ops, b.N); yes != b.N {
		b.Fatalf("%d of %d were a no", b.N-yes, b.N)
	}
}

// departTogether has callers share n departures, and returns after the last one.
func departTogether(l limiter, callers, n int, left func()) {
	var begun atomic.Int64
	gather(callers, func(ctx context.Context) {
		for begun.Add(1) <= int64(n) && l.wait(ctx) == nil {
			left()
		}
	}).wg.Wait()
}
