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

// eventLog keeps what a Trace was told.
type eventLog struct {
	mu     sync.Mutex
	events []told // guarded by mu
}

type told struct {
	what string
	transport.Event
}

func (l *eventLog) add(what string) func(transport.Event) {
	return func(e transport.Event) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.events = append(l.events, told{what, e})
	}
}

func (l *eventLog) trace() *transport.Trace {
	return &transport.Trace{
		Enqueued:     l.add("enqueued"),
		Granted:      l.add("granted"),
		Refused:      l.add("refused"),
		Held:         l.add("held"),
		ExtraAttempt: l.add("extra attempt"),
		Retried:      l.add("retried"),
	}
}

// take returns what was told since it was called last.
func (l *eventLog) take() []told {
	l.mu.Lock()
	defer l.mu.Unlock()
	events := l.events
	l.events = nil
	return events
}

// Each function is told what happens, with the values of that request.
func TestTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const key = "http://api.example"
		p := newPartner()
		var log eventLog
		g := newGroup(t, scheduler.PerSecond(10))
		tr := transport.NewKeyed(p, nil, g, transport.WithCost(func(req *http.Request) int64 { return max(1, req.ContentLength) }),
			transport.WithRetry(transport.Retry{}))
		send := func(ctx context.Context, answers ...func(*http.Request) (*http.Response, error)) error {
			script(p, answers...)
			_, err := tr.RoundTrip(get(t, transport.WithTrace(ctx, log.trace()), "/"))
			return err
		}

		require.NoError(t, send(transport.ContextWithCost(t.Context(), 2)))
		require.Equal(t, []told{
			{"enqueued", transport.Event{Key: key, Cost: 2}}, // of a new key the Group cannot say so without asking
			{"granted", transport.Event{Key: key, Cost: 2}},
		}, log.take())

		require.NoError(t, send(t.Context()))
		require.Equal(t, []told{
			{"enqueued", transport.Event{Key: key, Cost: 1}},
			{"granted", transport.Event{Key: key, Cost: 1, Waited: 200 * ms}},
		}, log.take())

		time.Sleep(50 * ms)
		ctx, cancel := context.WithTimeout(t.Context(), 49*ms)
		defer cancel()
		err := send(ctx)
		require.ErrorIs(t, err, shaper.ErrDeadline)
		require.Equal(t, []told{
			{"enqueued", transport.Event{Key: key, Cost: 1}},
			{"refused", transport.Event{Key: key, Cost: 1, Err: err}},
		}, log.take())

		time.Sleep(time.Second)
		require.NoError(t, send(t.Context()))
		time.Sleep(99 * ms)
		log.take()
		until := time.Now().Add(5*sec + ms)
		require.NoError(t, send(t.Context(), status(http.StatusTooManyRequests, "Retry-After: 5")))
		require.Equal(t, []told{
			{"enqueued", transport.Event{Key: key, Cost: 1}},
			{"granted", transport.Event{Key: key, Cost: 1, Waited: ms}},
			{"held", transport.Event{Key: key, Cost: 1, Status: http.StatusTooManyRequests, Until: until}},
			{"enqueued", transport.Event{Key: key, Cost: 1}},
			{"granted", transport.Event{Key: key, Cost: 1, Waited: 5 * sec}},
			{"retried", transport.Event{Key: key, Cost: 1, Status: http.StatusTooManyRequests}},
		}, log.take())

		broken := errors.New("connection refused")
		time.Sleep(time.Second)
		require.NoError(t, send(t.Context(), func(*http.Request) (*http.Response, error) { return nil, broken }))
		events := log.take()
		require.Len(t, events, 5)
		require.Equal(t, told{"retried", transport.Event{Key: key, Cost: 1, Err: broken}}, events[4])
	})
}

// A request that can leave at once is told as one that need not wait. One whose context has
// ended is none of the pace's business.
func TestTraceOfWhatNeedNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log eventLog
		tr := transport.New(newPartner(), newShaper(t, scheduler.PerSecond(10)), transport.WithHooks(log.trace()))
		mustSend(t, tr, "/")
		require.Equal(t, []told{{"enqueued", transport.Event{Cost: 1}}, {"granted", transport.Event{Cost: 1}}}, log.take())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := tr.RoundTrip(get(t, ctx, "/"))
		require.Error(t, err)
		require.Empty(t, log.take())
	})
}

// The functions of a context come first, then those of the hooks; of two in a context the
// later ones are called. None at all is fine, and so is a Trace without functions.
func TestTraceAndHooks(t *testing.T) {
	var order []string
	note := func(name string) *transport.Trace {
		return &transport.Trace{Granted: func(transport.Event) { order = append(order, name) }}
	}
	tr := transport.New(newPartner(), ready, transport.WithHooks(note("hooks")))
	ctx := transport.WithTrace(t.Context(), note("outer"))
	ctx = transport.WithTrace(transport.ContextWithCost(ctx, 1), note("inner"))
	_, err := tr.RoundTrip(get(t, transport.WithTrace(ctx, nil), "/"))
	require.NoError(t, err)
	require.Equal(t, []string{"inner", "hooks"}, order)

	tr = transport.New(newPartner(), ready, transport.WithHooks(nil))
	_, err = tr.RoundTrip(get(t, transport.WithTrace(t.Context(), &transport.Trace{}), "/"))
	require.NoError(t, err)
	_, err = tr.RoundTrip(get(t, transport.WithTrace(t.Context(), nil), "/"))
	require.NoError(t, err)
}

// A cost and a Trace in one context do not push each other out, in either order.
func TestCostAndTraceInOneContext(t *testing.T) {
	for _, ctx := range []func(*transport.Trace) context.Context{
		func(tr *transport.Trace) context.Context {
			return transport.WithTrace(transport.ContextWithCost(t.Context(), 3), tr)
		},
		func(tr *transport.Trace) context.Context {
			return transport.ContextWithCost(transport.WithTrace(t.Context(), tr), 3)
		},
	} {
		var log eventLog
		line := &costLine{}
		_, err := transport.New(newPartner(), line).RoundTrip(get(t, ctx(log.trace()), "/"))
		require.NoError(t, err)
		require.Equal(t, []int{3}, line.asked)
		require.Equal(t, "granted", log.take()[1].what)
	}
}
