package queue_test

import (
	"context"
	"testing"

	"github.com/sluice-go/sluice/queue"
)

// BenchmarkSubmit measures one job from Submit to its end in a line that grants at once.
func BenchmarkSubmit(b *testing.B) {
	q := newQueue(b, free(b), queue.WithWorkers(2))
	job := func(context.Context) error { return nil }
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if err := q.Submit(ctx, job); err != nil {
			b.Fatal(err)
		}
	}
	q.Shutdown(ctx)
}
