package clienttest

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	"github.com/sluice-go/sluice/transport/feedback"
)

// A plug sets a library up and returns a call by it: one request to the server at url,
// through rt.
type plug func(t *testing.T, url string, rt http.RoundTripper) func(context.Context) error

// A subject is a library with what is to be expected of it.
type subject struct {
	plug plug // set up as docs/clients.md says

	// careless is the same library without the setting against retries of local
	// refusals, and attempts is how often it asks then. Nil if it needs none.
	careless plug
	attempts int

	accept, refuse http.HandlerFunc
	classifier     feedback.Classifier
	hold           time.Duration // that refuse asks for, or that follows from its silence

	noContext   bool // its calls take none
	hidesCancel bool // it returns the error of the context in place of the one that it got
}

// check runs the suite. What waits, waits side by side.
func (s subject) check(t *testing.T) {
	t.Run("paced", func(t *testing.T) { t.Parallel(); s.checkPaced(t) })
	t.Run("held", func(t *testing.T) { t.Parallel(); s.checkHeld(t) })
	t.Run("one send", func(t *testing.T) { t.Parallel(); s.checkOneSend(t) })
	t.Run("typed error", func(t *testing.T) { t.Parallel(); s.checkTyped(t) })
	t.Run("keyed", func(t *testing.T) { t.Parallel(); s.checkKeyed(t) })
}

// through returns a call that passes through a Transport.
func (s subject) through(t *testing.T, srv *server, w transport.Waiter, opts ...transport.Option) func(context.Context) error {
	base := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(base.CloseIdleConnections)
	return s.plug(t, srv.url, transport.New(base, w, append(opts, transport.WithClassifier(s.classifier))...))
}

// Calls that are made together arrive at the pace. Nothing that happens on the way can
// make one arrive before it may have left.
func (s subject) checkPaced(t *testing.T) {
	srv := serve(t, s.refuse, s.accept, 0)
	call := s.through(t, srv, exactly(t, interval))

	const calls = 5
	begin := time.Now()
	together(t, calls, call)

	arrivals, _ := srv.seen()
	require.Len(t, arrivals, calls)
	slices.SortFunc(arrivals, time.Time.Compare)
	for i, at := range arrivals {
		require.GreaterOrEqual(t, at.Sub(begin), time.Duration(i)*interval, "request %d", i)
	}
}

// After a refusal no request arrives before the stated time: neither other calls nor an
// attempt that the library makes by itself.
func (s subject) checkHeld(t *testing.T) {
	srv := serve(t, s.refuse, s.accept, 1)
	heard, hooks := heldHook()
	call := s.through(t, srv, exactly(t, interval), transport.WithHooks(hooks))

	var first error // nil if the library tries again by itself
	var all sync.WaitGroup
	all.Go(func() { first = call(t.Context()) })
	await(t, heard)
	together(t, 3, call)
	all.Wait()

	arrivals, refused := srv.seen()
	retried := 0
	if first == nil {
		retried = 1
	}
	require.Len(t, arrivals, 1+retried+3)
	for i, at := range arrivals[1:] {
		require.GreaterOrEqual(t, at.Sub(refused), s.hold, "request %d after the refusal", i)
	}
}

// heldHook returns hooks that tell the key which a refusal holds.
func heldHook() (<-chan string, *transport.Trace) {
	heard := make(chan string, 16)
	return heard, &transport.Trace{Held: func(e transport.Event) { heard <- e.Key }}
}

func await(t *testing.T, heard <-chan string) (key string) {
	t.Helper()
	select {
	case key = <-heard:
	case <-time.After(10 * time.Second):
		require.FailNow(t, "no refusal was heard of")
	}
	return key
}

// What is refused here is asked for once and sends nothing.
func (s subject) checkOneSend(t *testing.T) {
	asks := func(t *testing.T, p plug, full bool) (asked int) {
		srv := serve(t, s.refuse, s.accept, 0)
		ctx, w := t.Context(), &turns{}
		if full {
			w.shaper = exhausted(t, shaper.WithQueue(1))
		} else {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Minute)
			defer cancel()
			w.shaper = exhausted(t)
		}
		call := p(t, srv.url, transport.New(nil, w))
		require.Error(t, call(ctx))
		arrivals, _ := srv.seen()
		require.Empty(t, arrivals)
		return int(w.asked.Load())
	}
	require.Equal(t, 1, asks(t, s.plug, true), "the line is full")
	if !s.noContext {
		require.Equal(t, 1, asks(t, s.plug, false), "the deadline cannot be met")
	}
	if s.careless != nil {
		require.Equal(t, s.attempts, asks(t, s.careless, true), "without the setting")
	}
}

// What the library returns tells that nothing was sent, why, and when to come back.
func (s subject) checkTyped(t *testing.T) {
	srv := serve(t, s.refuse, s.accept, 0)

	err := s.through(t, srv, exhausted(t, shaper.WithQueue(1)))(t.Context())
	requireNotSent(t, err, shaper.ErrQueueFull)

	if s.noContext {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = s.through(t, srv, exhausted(t))(ctx)
	requireNotSent(t, err, shaper.ErrDeadline)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	ctx, cancel = context.WithCancel(t.Context())
	line := exhausted(t)
	hooks := &transport.Trace{Enqueued: func(transport.Event) { cancel() }}
	err = s.through(t, srv, line, transport.WithHooks(hooks))(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, !s.hidesCancel, errors.Is(err, transport.ErrNotSent), "%v", err)
}

func requireNotSent(t *testing.T, err, reason error) {
	t.Helper()
	require.ErrorIs(t, err, transport.ErrNotSent)
	require.ErrorIs(t, err, reason)
	var notSent *transport.Error
	require.ErrorAs(t, err, &notSent)
	require.Greater(t, notSent.Wait, time.Hour)
}

// A refusal by one partner does not hold another.
func (s subject) checkKeyed(t *testing.T) {
	group, err := shaper.NewGroup[string](scheduler.Every(interval))
	require.NoError(t, err)
	base := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(base.CloseIdleConnections)
	heard, hooks := heldHook()
	granted := make(chan string, 16)
	hooks.Granted = func(e transport.Event) { granted <- e.Key }
	rt := transport.NewKeyed(base, nil, group, transport.WithClassifier(s.classifier), transport.WithHooks(hooks))

	refusing, other := serve(t, s.refuse, s.accept, 1), serve(t, s.refuse, s.accept, 0)
	var first sync.WaitGroup
	first.Go(func() { _ = s.plug(t, refusing.url, rt)(t.Context()) }) // may try again by itself
	require.Equal(t, refusing.url, await(t, heard))
	require.NoError(t, s.plug(t, other.url, rt)(t.Context()))
	first.Wait()
	close(granted)
	require.Contains(t, slices.Collect(channel(granted)), other.url)
}

func channel(c <-chan string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for s := range c {
			if !yield(s) {
				return
			}
		}
	}
}

// together makes calls at the same time, which all succeed.
func together(t *testing.T, calls int, call func(context.Context) error) {
	t.Helper()
	errs := make([]error, calls)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = call(t.Context()) })
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
}
