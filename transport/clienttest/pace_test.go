package clienttest

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
)

// interval is T in these tests.
const interval = 20 * time.Millisecond

// exactly returns a Shaper that tolerates no lateness: calls are never closer than d.
func exactly(t *testing.T, d time.Duration, opts ...shaper.Option) *shaper.Shaper {
	t.Helper()
	s, err := shaper.New(scheduler.Every(d), append(opts, shaper.WithTolerance(0))...)
	require.NoError(t, err)
	return s
}

// exhausted returns a Shaper from which nothing can leave for more than an hour. With a
// line of one call that is more than it can hold.
func exhausted(t *testing.T, opts ...shaper.Option) *shaper.Shaper {
	t.Helper()
	s := exactly(t, time.Hour, opts...)
	for range 2 { // as two calls, since the line counts in units of what left last
		s.Charge(1)
	}
	return s
}

// turns is a Waiter that counts how often it is asked.
type turns struct {
	shaper *shaper.Shaper
	asked  atomic.Int64
}

func (w *turns) Wait(ctx context.Context) error {
	w.asked.Add(1)
	return w.shaper.Wait(ctx)
}

// untyped hides what an error is. So it shows what a library does with a failure to send
// about which it is told nothing.
type untyped struct{ http.RoundTripper }

func (u untyped) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := u.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, errors.New(err.Error())
	}
	return resp, nil
}

// isLocal reports whether an error is a refusal of a Transport's.
func isLocal(err error) bool {
	_, local := errors.AsType[*transport.Error](err)
	return local
}
