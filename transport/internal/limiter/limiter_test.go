package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/transport/internal/limiter"
)

// due is what x/time's *rate.Limiter does: a call leaves after a time, also at the very instant of
// the deadline, and what costs more than the burst is refused before anything else.
type due struct {
	after time.Duration
	burst int
}

func (d due) Burst() int      { return d.burst }
func (d due) Tokens() float64 { return 0 }

func (d due) wait(cost int) func(context.Context) error {
	return func(ctx context.Context) error {
		if cost > d.burst {
			return fmt.Errorf("rate: Wait(n=%d) exceeds limiter's burst %d", cost, d.burst)
		}
		if deadline, ok := ctx.Deadline(); ok && d.after > time.Until(deadline) {
			return fmt.Errorf("rate: Wait(n=%d) would exceed context deadline", cost)
		}
		select {
		case <-time.After(d.after):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// A refusal is a timeout if it is for the deadline, which what leaves must lie before, and is
// handed on as it is if it is for anything else.
func TestWait(t *testing.T) {
	own := errors.New("closed")
	for name, tc := range map[string]struct {
		deadline time.Duration // 0: none
		cancel   time.Duration // 0: never
		cost     int
		wait     func(context.Context) error
		took     time.Duration
		want     error // nil: leaves
		timeout  bool
	}{
		"in time":             {deadline: time.Second + 1, cost: 1, took: time.Second},
		"at the deadline":     {deadline: time.Second, cost: 1, want: context.DeadlineExceeded, timeout: true},
		"late":                {deadline: time.Millisecond, cost: 5, want: context.DeadlineExceeded, timeout: true},
		"no deadline":         {cost: 1, took: time.Second},
		"above the burst":     {deadline: time.Hour, cost: 6},
		"cancelled meanwhile": {deadline: time.Hour, cancel: time.Millisecond, cost: 1, took: time.Millisecond, want: context.Canceled},
		"a typed refusal":     {deadline: time.Hour, cost: 1, wait: func(context.Context) error { return context.Canceled }, want: context.Canceled},
		"another reason":      {cost: 1, wait: func(context.Context) error { return own }, want: own},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := due{time.Second, 5}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tc.deadline > 0 {
					dated, cancel := context.WithTimeout(ctx, tc.deadline)
					defer cancel()
					ctx = dated
				}
				if tc.cancel > 0 {
					time.AfterFunc(tc.cancel, cancel)
				}
				wait := tc.wait
				if wait == nil {
					wait = l.wait(tc.cost)
				}
				began := time.Now()
				err := limiter.Wait(ctx, l, tc.cost, wait)
				require.Equal(t, tc.took, time.Since(began))
				var timeout interface{ Timeout() bool }
				require.Equal(t, tc.timeout, errors.As(err, &timeout) && timeout.Timeout())
				switch {
				case tc.cost > l.burst:
					require.EqualError(t, err, "rate: Wait(n=6) exceeds limiter's burst 5")
				case tc.want == nil:
					require.NoError(t, err)
				default:
					require.ErrorIs(t, err, tc.want)
				}
			})
		})
	}
}
