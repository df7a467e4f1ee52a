package transport_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	"github.com/stretchr/testify/require"
)

// gauge is what a user makes of a Trace: how many wait.
type gauge struct {
	mu         sync.Mutex
	depth, low int // guarded by mu
}

func (g *gauge) add(n int) func(transport.Event) {
	return func(transport.Event) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.depth += n
		g.low = min(g.low, g.depth)
	}
}

func (g *gauge) trace() *transport.Trace {
	return &transport.Trace{Enqueued: g.add(1), Granted: g.add(-1), Refused: g.add(-1)}
}

func (g *gauge) waiting() (depth, low int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.depth, g.low
}

// A gauge that a Trace feeds is never below 0, counts the requests that wait, and ends at 0,
// whatever becomes of them. So does that of the hooks, also if a function of the context's panics.
func TestTraceFeedsAGauge(t *testing.T) {
	refusals := func(p *partner) {
		script(p, status(200), status(200), status(http.StatusTooManyRequests, "Retry-After: 1"),
			func(*http.Request) (*http.Response, error) { return nil, errors.New("reset") })
	}
	for name, tc := range map[string]struct {
		waiter func(*testing.T) transport.Waiter // nil: a Shaper of 10/s
		setup  func(*partner)
		opts   []transport.Option
		ctx    func(context.Context) context.Context
		waits  int // 50 ms after the ten have come
		panics bool
	}{
		"retries":           {setup: refusals, opts: []transport.Option{transport.WithRetry(transport.Retry{})}, waits: 9},
		"retries, in place": {setup: refusals, opts: []transport.Option{transport.WithRetry(transport.Retry{}), transport.WithMaxInFlight(2)}, waits: 9},
		"retry without a chance": {setup: refusals, opts: []transport.Option{transport.WithRetry(transport.Retry{}), transport.WithMaxDelay(950 * ms)},
			waits: 9},
		"line of 3": {waiter: func(t *testing.T) transport.Waiter {
			return newShaper(t, scheduler.PerSecond(10), shaper.WithQueue(3))
		}, waits: 2},
		"at once": {waiter: func(t *testing.T) transport.Waiter { return newShaper(t, scheduler.Unlimited) }},
		"dead": {ctx: func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx
		}},
		"cost of 0":          {ctx: func(ctx context.Context) context.Context { return transport.ContextWithCost(ctx, 0) }},
		"the Waiter refuses": {waiter: func(*testing.T) transport.Waiter { return refusing(errFull) }},
		"the Waiter panics":  {waiter: func(*testing.T) transport.Waiter { return waitFunc(func(context.Context) error { panic("boom") }) }, panics: true},
		"the base panics": {setup: func(p *partner) { p.answer = func(*http.Request) (*http.Response, error) { panic("boom") } },
			waits: 9, panics: true},
		"the base panics, in place": {setup: func(p *partner) { p.answer = func(*http.Request) (*http.Response, error) { panic("boom") } },
			opts: []transport.Option{transport.WithMaxInFlight(2)}, waits: 9, panics: true},
		"Enqueued panics": {ctx: func(ctx context.Context) context.Context {
			return transport.WithTrace(ctx, &transport.Trace{Enqueued: func(transport.Event) { panic("boom") }})
		}, panics: true},
		"Granted panics": {ctx: func(ctx context.Context) context.Context {
			return transport.WithTrace(ctx, &transport.Trace{Granted: func(transport.Event) { panic("boom") }})
		}, waits: 9, panics: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPartner()
				if tc.setup != nil {
					tc.setup(p)
				}
				var w transport.Waiter
				if tc.waiter != nil {
					w = tc.waiter(t)
				} else {
					w = newShaper(t, scheduler.PerSecond(10))
				}
				var g gauge
				tr := transport.New(p, w, append(tc.opts, transport.WithHooks(g.trace()))...)
				var all sync.WaitGroup
				for range 10 {
					all.Go(func() {
						defer func() { require.Equal(t, tc.panics, recover() != nil) }()
						ctx := t.Context()
						if tc.ctx != nil {
							ctx = tc.ctx(ctx)
						}
						if resp, err := tr.RoundTrip(get(t, ctx, "/")); err == nil {
							resp.Body.Close()
						}
					})
					synctest.Wait()
				}
				time.Sleep(50 * ms)
				depth, _ := g.waiting()
				require.Equal(t, tc.waits, depth)
				all.Wait()
				depth, low := g.waiting()
				require.Zero(t, depth)
				require.Zero(t, low)
			})
		})
	}
}
