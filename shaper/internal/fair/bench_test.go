package fair_test

import (
	"testing"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper/internal/fair"
)

// BenchmarkDeparture is a departure of one of ten thousand flows that all have calls.
func BenchmarkDeparture(b *testing.B) {
	const flows = 10_000
	s := fair.New[int](1)
	s.SetRate(scheduler.PerSecond(1_000_000))
	all := make([]fair.Flow[int], flows)
	for i := range all {
		s.Join(&all[i], 1, 1<<30, int64(1+i%7), uint64(i))
	}
	now, order := time.Duration(0), uint64(flows)
	b.ReportAllocs()
	for b.Loop() {
		now += time.Microsecond
		s.Advance(now)
		f := s.First()
		s.Left(f)
		order++
		s.Succeed(f, 1, order)
	}
}
