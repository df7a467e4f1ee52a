package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	"github.com/sluice-go/sluice/transport/feedback"
	"github.com/stretchr/testify/require"
)

// A path is a way that a request can take through a Transport.
type path struct {
	setup func(w *world)
	sent  int  // how often the base gets it
	panic bool // what the user has supplied does
}

// A world is what a path is made of.
type world struct {
	t       *testing.T
	ctx     context.Context
	req     *http.Request
	made    *[]*countedBody // the bodies of the request, the first one included
	base    *partner
	pace    []shaper.Option
	shaper  *shaper.Shaper
	waiter  transport.Waiter      // in place of the Shaper
	group   transport.KeyedWaiter // in place of it, too
	key     func(*http.Request) string
	opts    []transport.Option
	before  func(*transport.Transport) // with the Transport that is made of it
	after   func()                     // a second after the request has come
	cleanup func()
}

// busy has the request wait for long.
func (w *world) busy() {
	w.before = func(tr *transport.Transport) {
		ctx := transport.ContextWithCost(context.Background(), 100)
		_, err := tr.RoundTrip(get(w.t, ctx, "/busy"))
		require.NoError(w.t, err)
	}
}

func (w *world) option(opts ...transport.Option) { w.opts = append(w.opts, opts...) }

func (w *world) retry() { w.option(transport.WithRetry(transport.Retry{Resend429: true, Attempts: 3})) }

func (w *world) cancelAfter(d time.Duration) {
	ctx, cancel := context.WithCancel(w.ctx)
	w.ctx = ctx
	time.AfterFunc(d, cancel)
}

func (w *world) deadline(d time.Duration) {
	w.ctx, w.cleanup = context.WithTimeout(w.ctx, d)
}

func boom() { panic("boom") }

// paths are all that there are.
var paths = map[string]path{
	"sent":              {sent: 1, setup: func(*world) {}},
	"sent after a wait": {sent: 1, setup: (*world).busy},
	"sent, with a key":  {sent: 1, setup: func(w *world) { w.group = newGroup(w.t, scheduler.PerSecond(10)) }},
	"sent, in place":    {sent: 1, setup: func(w *world) { w.option(transport.WithMaxInFlight(1)) }},
	"sent, without any option of the Waiter's": {sent: 1, setup: func(w *world) { w.waiter = ready }},
	"base error": {sent: 1, setup: func(w *world) {
		script(w.base, func(*http.Request) (*http.Response, error) { return nil, errors.New("reset") })
	}},
	"base error, in place": {sent: 1, setup: func(w *world) {
		w.option(transport.WithMaxInFlight(1))
		script(w.base, func(*http.Request) (*http.Response, error) { return nil, errors.New("reset") })
	}},
	"base panics": {sent: 1, panic: true, setup: func(w *world) {
		script(w.base, func(*http.Request) (*http.Response, error) { boom(); return nil, nil })
	}},
	"refused by the partner": {sent: 1, setup: func(w *world) {
		script(w.base, status(http.StatusTooManyRequests, "Retry-After: 1"))
	}},

	"dead ctx": {setup: func(w *world) { w.cancelAfter(0); pass(0) }},
	"no URL":   {setup: func(w *world) { w.req.URL = nil }},
	"cost below 1": {setup: func(w *world) {
		w.option(transport.WithCost(func(*http.Request) int64 { return 0 }))
	}},
	"cost of the context below 1": {setup: func(w *world) { w.ctx = transport.ContextWithCost(w.ctx, -1) }},
	"cost that the Waiter cannot": {setup: func(w *world) {
		w.waiter = ready
		w.ctx = transport.ContextWithCost(w.ctx, 2)
	}},
	"cost that the Waiter refuses": {setup: func(w *world) {
		w.pace = []shaper.Option{shaper.WithLimits(must(scheduler.NewTokenBucket(scheduler.PerSecond(10), 2)))}
		w.ctx = transport.ContextWithCost(w.ctx, 3)
	}},
	"line full": {setup: func(w *world) { w.pace = []shaper.Option{shaper.WithQueue(1)}; w.busy() }},
	"deadline":  {setup: func(w *world) { w.busy(); w.deadline(time.Second) }},
	"max delay": {setup: func(w *world) { w.busy(); w.option(transport.WithMaxDelay(time.Second)) }},
	"max delay of the Waiter": {setup: func(w *world) {
		w.busy()
		w.pace = []shaper.Option{shaper.WithMaxDelay(time.Second)}
	}},
	"closed":           {setup: func(w *world) { w.before = func(*transport.Transport) { _ = w.shaper.Close() } }},
	"closed in line":   {setup: func(w *world) { w.busy(); w.after = func() { _ = w.shaper.Close() } }},
	"cancelled":        {setup: func(w *world) { w.busy(); w.cancelAfter(time.Second) }},
	"deadline in line": {setup: func(w *world) { w.waiter = forever; w.deadline(time.Second) }},
	"held": {setup: func(w *world) {
		w.deadline(time.Second)
		w.before = func(tr *transport.Transport) { w.shaper.HoldUntil(time.Now().Add(time.Hour)) }
	}},
	"held in line": {setup: func(w *world) {
		w.busy()
		w.deadline(11 * time.Second)
		w.after = func() { w.shaper.HoldUntil(time.Now().Add(time.Hour)) }
	}},
	"too many keys": {setup: func(w *world) {
		g := newGroup(w.t, scheduler.PerHour(1), shaper.WithMaxKeys(1))
		require.True(w.t, g.Allow("another key"))
		w.group = g
	}},
	"place in flight": {setup: func(w *world) {
		w.option(transport.WithMaxInFlight(1))
		w.deadline(time.Second)
		w.before = func(tr *transport.Transport) {
			script(w.base, func(req *http.Request) (*http.Response, error) { return says(req, http.StatusOK, "x"), nil })
			_, err := tr.RoundTrip(get(w.t, context.Background(), "/busy"))
			require.NoError(w.t, err)
		}
	}},
	"place, but no unit": {setup: func(w *world) {
		w.busy()
		w.option(transport.WithMaxInFlight(1))
		w.deadline(time.Second)
	}},
	"waiter refuses": {setup: func(w *world) { w.waiter = refusing(errors.New("no")) }},

	"waiter panics":   {panic: true, setup: func(w *world) { w.waiter = waitFunc(func(context.Context) error { boom(); return nil }) }},
	"waiter exits":    {panic: true, setup: func(w *world) { w.waiter = waitFunc(func(context.Context) error { runtime.Goexit(); return nil }) }},
	"LeaveNow panics": {panic: true, setup: func(w *world) { w.waiter = badLeaver{} }},
	"waiter panics, in place": {panic: true, setup: func(w *world) {
		w.waiter = placesOf(w.t, func(context.Context) error { boom(); return nil })
		w.option(transport.WithMaxInFlight(1))
	}},
	"key panics": {panic: true, setup: func(w *world) {
		w.group = newGroup(w.t, scheduler.PerSecond(10))
		w.key = func(*http.Request) string { boom(); return "" }
	}},
	"cost panics": {panic: true, setup: func(w *world) {
		w.option(transport.WithCost(func(*http.Request) int64 { boom(); return 1 }))
	}},
	"classifier panics": {sent: 1, panic: true, setup: func(w *world) {
		script(w.base, status(http.StatusTooManyRequests))
		w.option(transport.WithClassifier(func(*feedback.Answer) feedback.Verdict { boom(); return feedback.Verdict{} }))
	}},
	"Enqueued panics": {panic: true, setup: func(w *world) {
		w.waiter = ready
		w.option(transport.WithHooks(&transport.Trace{Enqueued: func(transport.Event) { boom() }}))
	}},
	"Granted panics": {panic: true, setup: func(w *world) {
		w.option(transport.WithHooks(&transport.Trace{Granted: func(transport.Event) { boom() }}))
	}},
	"Granted panics, after a wait": {panic: true, setup: func(w *world) {
		w.waiter = ready
		w.option(transport.WithHooks(&transport.Trace{Granted: func(transport.Event) { boom() }}))
	}},
	"Refused panics": {panic: true, setup: func(w *world) {
		w.waiter = refusing(errors.New("no"))
		w.option(transport.WithHooks(&transport.Trace{Refused: func(transport.Event) { boom() }}))
	}},
	"Held panics": {sent: 1, panic: true, setup: func(w *world) {
		script(w.base, status(http.StatusTooManyRequests))
		w.option(transport.WithHooks(&transport.Trace{Held: func(transport.Event) { boom() }}))
	}},

	"sent again": {sent: 3, setup: func(w *world) {
		w.retry()
		script(w.base, always(status(http.StatusTooManyRequests, "Retry-After: 1"), 2)...)
	}},
	"sent again in place": {sent: 3, setup: func(w *world) {
		w.retry()
		w.option(transport.WithMaxInFlight(1))
		script(w.base, always(status(http.StatusTooManyRequests, "Retry-After: 1"), 5)...)
	}},
	"sent again after an error": {sent: 2, setup: func(w *world) {
		w.retry()
		w.req.Header.Set("Idempotency-Key", "k")
		script(w.base, func(*http.Request) (*http.Response, error) { return nil, errors.New("reset") })
	}},
	"no GetBody": {sent: 1, setup: func(w *world) {
		w.retry()
		w.req.GetBody = nil
		script(w.base, status(http.StatusTooManyRequests, "Retry-After: 1"))
	}},
	"GetBody fails": {sent: 1, setup: func(w *world) {
		w.retry()
		w.req.GetBody = func() (io.ReadCloser, error) { return nil, errors.New("gone") }
		script(w.base, status(http.StatusTooManyRequests, "Retry-After: 1"))
	}},
	"GetBody panics": {sent: 1, panic: true, setup: func(w *world) {
		w.retry()
		w.req.GetBody = func() (io.ReadCloser, error) { boom(); return nil, nil }
		script(w.base, status(http.StatusTooManyRequests, "Retry-After: 1"))
	}},
	"sent again too late": {sent: 1, setup: func(w *world) {
		w.retry()
		w.deadline(time.Second)
		script(w.base, status(http.StatusTooManyRequests, "Retry-After: 1"))
	}},
	"cancelled before it is sent again": {sent: 1, setup: func(w *world) {
		w.retry()
		w.cancelAfter(time.Second)
		script(w.base, status(http.StatusTooManyRequests, "Retry-After: 5"))
	}},
	"closed before it is sent again": {sent: 1, setup: func(w *world) {
		w.retry()
		w.after = func() { _ = w.shaper.Close() }
		script(w.base, status(http.StatusTooManyRequests, "Retry-After: 5"))
	}},
	"Waiter panics before it is sent again": {sent: 1, panic: true, setup: func(w *world) {
		w.retry()
		asked := 0
		w.waiter = waitFunc(func(context.Context) error {
			if asked++; asked == 2 {
				boom()
			}
			return nil
		})
		script(w.base, status(http.StatusTooManyRequests, "Retry-After: 5"))
	}},
	"Retried panics": {sent: 1, panic: true, setup: func(w *world) {
		w.retry()
		w.option(transport.WithHooks(&transport.Trace{Retried: func(transport.Event) { boom() }}))
		script(w.base, status(http.StatusTooManyRequests, "Retry-After: 5"))
	}},
	"Granted panics before it is sent again": {sent: 1, panic: true, setup: func(w *world) {
		w.retry()
		granted := 0
		w.option(transport.WithHooks(&transport.Trace{Granted: func(transport.Event) {
			if granted++; granted == 2 {
				boom()
			}
		}}))
		script(w.base, status(http.StatusTooManyRequests, "Retry-After: 5"))
	}},
}

// badLeaver is a Waiter whose LeaveNow panics.
type badLeaver struct{ waitFunc }

func (badLeaver) LeaveNow(int) bool { boom(); return false }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
