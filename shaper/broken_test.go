package shaper_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// A broken schedule answers without regard to its contract, and counts how often.
type broken struct {
	next  func(t time.Time) time.Time
	asked int
}

func (b *broken) Next(t time.Time, _, _ int64) time.Time { b.asked++; return b.next(t) }
func (b *broken) Commit(_, _ time.Time, _ int64)         {}
func (b *broken) MaxCost() int64                         { return 1 }

// A schedule that always says "in a moment" lets nothing leave, but it does not keep a core
// busy either.
func TestBrokenScheduleKeepsNoCoreBusy(t *testing.T) {
	soon := func(time.Time) time.Time { return time.Now().Add(1) }
	for name, around := range map[string]func(scheduler.Scheduler) scheduler.Scheduler{
		"alone":  func(s scheduler.Scheduler) scheduler.Scheduler { return s },
		"in All": func(s scheduler.Scheduler) scheduler.Scheduler { return scheduler.All(s) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &broken{next: soon}
				s := shaper.MustNewFrom(around(b))
				ctx, cancel := context.WithTimeout(t.Context(), 2*ms)
				defer cancel()
				assert.Equal(t, context.DeadlineExceeded, s.Wait(ctx))
				assert.Less(t, b.asked, 1000)
				conserved(t, s)

				b.next = func(t time.Time) time.Time { return t }
				assert.NoError(t, s.Wait(t.Context()), "mended, it lets calls leave")
			})
		})
	}
}

// A schedule whose answers lie in the past lets calls leave at once.
func TestBrokenScheduleOfThePast(t *testing.T) {
	for name, next := range map[string]func(time.Time) time.Time{
		"an hour ago":   func(t time.Time) time.Time { return t.Add(-time.Hour) },
		"the zero Time": func(time.Time) time.Time { return time.Time{} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := shaper.MustNewFrom(&broken{next: next})
				for range 10 {
					assert.NoError(t, s.Wait(t.Context()))
				}
				conserved(t, s)
			})
		})
	}
}
