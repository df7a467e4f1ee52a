package main

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	xtime "golang.org/x/time/rate"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
)

// Over x/time's Limiter a Transport answers as over a Shaper: the third of three requests is
// refused at once, and the second, which waits exactly as long as it may, is not. This module
// is the one that has the real Limiter.
func TestTransportOverXTime(t *testing.T) {
	for name, make := range map[string]func() transport.Waiter{
		"x/time": func() transport.Waiter { return xtime.NewLimiter(10, 1) },
		"Shaper": func() transport.Waiter {
			s, err := shaper.New(scheduler.PerSecond(10))
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	} {
		for what, tc := range map[string]struct {
			opts     []transport.Option
			deadline time.Duration
			want     error
		}{
			"max delay": {opts: []transport.Option{transport.WithMaxDelay(100 * time.Millisecond)}, want: transport.ErrMaxDelay},
			"deadline":  {deadline: 100*time.Millisecond + 1, want: context.DeadlineExceeded},
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					tr := transport.New(stub{}, make(), tc.opts...)
					ctx := t.Context()
					if tc.deadline > 0 {
						short, cancel := context.WithTimeout(ctx, tc.deadline)
						defer cancel()
						ctx = short
					}
					req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://api.example/", nil)
					if err != nil {
						t.Fatal(err)
					}
					began := time.Now()
					if _, err := tr.RoundTrip(req); err != nil {
						t.Fatal(err)
					}
					second := inBackground(func() error { _, err := tr.RoundTrip(req); return err })
					synctest.Wait()
					_, err = tr.RoundTrip(req)
					var refused *transport.Error
					if !errors.As(err, &refused) || !errors.Is(err, tc.want) || !refused.Timeout() || !errors.Is(err, transport.ErrNotSent) {
						t.Errorf("the third gets %v", err)
					}
					if !time.Now().Equal(began) {
						t.Errorf("the third is told after %v", time.Since(began))
					}
					if err := <-second; err != nil {
						t.Errorf("the second gets %v", err)
					}
					if d := time.Since(began); d != 100*time.Millisecond {
						t.Errorf("the second left after %v", d)
					}
				})
			})
		}
	}
}

func inBackground(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}
