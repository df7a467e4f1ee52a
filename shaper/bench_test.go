package shaper_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// ready is so fast that no call ever waits.
var ready = scheduler.PerSecond(2_000_000_000)

func BenchmarkWaitReady(b *testing.B) {
	s := newShaper(b, ready, shaper.WithBurst(1_000_000_000))
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Wait(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWaitReadyParallel(b *testing.B) {
	s := newShaper(b, ready, shaper.WithBurst(1_000_000_000))
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := s.Wait(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkWaitBlocked is a departure from a line that always holds 100 calls.
func BenchmarkWaitBlocked(b *testing.B) {
	s := newShaper(b, scheduler.PerSecond(100_000))
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	b.ReportAllocs()
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			for n := i; n < b.N; n += 100 {
				if err := s.Wait(ctx); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestReadyWaitAllocatesNothing(t *testing.T) {
	s := newShaper(t, ready, shaper.WithBurst(1_000_000_000))
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if err := s.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}))
}
