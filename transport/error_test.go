package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	"github.com/stretchr/testify/require"
)

// refusal is a Waiter's error with the optional methods, as *shaper.Refusal has
// them.
type refusal struct {
	reason  error
	wait    time.Duration
	timeout bool
}

func (r *refusal) Error() string            { return r.reason.Error() }
func (r *refusal) Unwrap() error            { return r.reason }
func (r *refusal) Timeout() bool            { return r.timeout }
func (r *refusal) WouldWait() time.Duration { return r.wait }

var errFull = errors.New("line full")

func TestErrorFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := &refusal{reason: errFull, wait: 90 * time.Second}
		tr := transport.New(newPartner(), waitFunc(func(context.Context) error {
			time.Sleep(1250 * time.Millisecond)
			return fmt.Errorf("sms: %w", full) // a Waiter of the user's own may wrap the Shaper's error
		}))
		req, body, unchanged := post(t, t.Context())
		resp, err := tr.RoundTrip(req)
		require.Nil(t, resp)
		e, ok := err.(*transport.Error)
		require.True(t, ok, "outermost, not wrapped")
		require.Equal(t, "https://api.example", e.Key)
		require.Equal(t, 1250*time.Millisecond, e.Waited)
		require.Equal(t, 90*time.Second, e.Wait)
		require.True(t, e.RetryAt.Equal(time.Now().Add(90*time.Second)), e.RetryAt)
		require.EqualError(t, err,
			"transport: https://api.example: not sent, waited 1.25s, would need 1m30s: sms: line full")
		require.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), "hunter2")

		require.ErrorIs(t, err, transport.ErrNotSent)
		require.ErrorIs(t, err, errFull)
		var r *refusal
		require.ErrorAs(t, err, &r)
		require.Same(t, full, r)
		require.Equal(t, 1, body.closed)
		unchanged()
	})
}

func TestErrorWithoutPrediction(t *testing.T) {
	for name, reason := range map[string]error{
		"no such method": errFull,
		"unknown":        &refusal{reason: errFull},
		"negative":       &refusal{reason: errFull, wait: -time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, err := transport.New(newPartner(), refusing(reason)).RoundTrip(get(t, t.Context(), "/x"))
				var e *transport.Error
				require.ErrorAs(t, err, &e)
				require.Zero(t, e.Wait)
				require.True(t, e.RetryAt.IsZero())
				require.EqualError(t, err, "transport: http://api.example: not sent, waited 0s: line full")
			})
		})
	}
}

func TestErrorTimeout(t *testing.T) {
	for name, tc := range map[string]struct {
		reason error
		want   bool
	}{
		"deadline passed in the line": {context.DeadlineExceeded, true},
		"refused for the deadline":    {&refusal{reason: context.DeadlineExceeded, timeout: true}, true},
		"refused for MaxDelay":        {fmt.Errorf("sms: %w", &refusal{reason: errors.New("max delay"), timeout: true}), true},
		"cancelled":                   {context.Canceled, false},
		"full":                        {&refusal{reason: errFull}, false},
		"says nothing":                {errFull, false},
	} {
		t.Run(name, func(t *testing.T) {
			client := &http.Client{Transport: transport.New(newPartner(), refusing(tc.reason))}
			_, err := client.Get("http://api.example/x")
			var ue *url.Error
			require.ErrorAs(t, err, &ue)
			require.Equal(t, tc.want, ue.Timeout(), "url.Error.Timeout")
			require.Equal(t, tc.want, os.IsTimeout(err), "os.IsTimeout")
			require.False(t, ue.Temporary(), "url.Error.Temporary")
			require.ErrorIs(t, err, transport.ErrNotSent)

			var ne net.Error
			require.True(t, errors.As(ue.Err, &ne))
			require.Equal(t, tc.want, ne.Timeout(), "net.Error")
		})
	}
}

// Client libraries look for these methods with errors.As, starting from the
// *url.Error or what they wrapped it in.
func TestErrorStopsClientsThatRetry(t *testing.T) {
	client := &http.Client{Transport: transport.New(newPartner(), refusing(context.DeadlineExceeded))}
	_, err := client.Get("http://api.example/x")
	err = fmt.Errorf("operation error SNS: Publish: %w", err)

	var aws interface{ RetryableError() bool }
	require.ErrorAs(t, err, &aws)
	require.False(t, aws.RetryableError())

	var azure interface {
		error
		NonRetriable()
	}
	require.ErrorAs(t, err, &azure)
	azure.NonRetriable()
}

// An Error made by a test or a wrapper need not be complete.
func TestEmptyError(t *testing.T) {
	e := &transport.Error{}
	require.NotPanics(t, func() { _ = e.Error() })
	require.False(t, e.Timeout())
	require.ErrorIs(t, e, transport.ErrNotSent)
}

// The wait and the hold are told once, though the Shaper's error tells them too, and with
// as many digits as say something.
func TestErrorTellsTheWaitOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := shaper.New(scheduler.PerMinute(7), shaper.WithMaxDelay(time.Second))
		require.NoError(t, err)
		require.True(t, s.Allow())
		send := func(pace transport.Waiter, opts ...transport.Option) error {
			_, err := transport.New(newPartner(), pace, opts...).RoundTrip(get(t, t.Context(), "/"))
			return err
		}
		require.EqualError(t, send(s), "transport: http://api.example: not sent, waited 0s, would need 8.571s: "+
			"shaper: wait exceeds the maximum delay (cost 1)")
		wrapped := waitFunc(func(ctx context.Context) error { return fmt.Errorf("account 7: %w", s.Wait(ctx)) })
		require.EqualError(t, send(wrapped), "transport: http://api.example: not sent, waited 0s: "+
			"account 7: shaper: wait exceeds the maximum delay (cost 1, would wait 8.571s)")
		patient, err := shaper.New(scheduler.PerMinute(7))
		require.NoError(t, err)
		require.True(t, patient.Allow())
		require.EqualError(t, send(patient, transport.WithMaxDelay(ms)), "transport: http://api.example: not sent, waited 0s, would need 8.571s: "+
			"transport: wait exceeds the maximum delay of 1ms")

		s.HoldUntil(time.Now().Add(time.Hour))
		require.EqualError(t, send(s), "transport: http://api.example: not sent, waited 0s, would need 1h0m0s, held until 2000-01-01T01:00:00Z: "+
			"shaper: wait exceeds the maximum delay (cost 1)")
		err = send(waitFunc(func(context.Context) error { return &shaper.Refusal{Reason: shaper.ErrQueueFull, Cost: 1} }))
		require.EqualError(t, err, "transport: http://api.example: not sent, waited 0s: shaper: queue full (cost 1)")
		var e *transport.Error
		require.ErrorAs(t, err, &e)
		require.Zero(t, e.Wait, "unknown")
		require.Zero(t, e.RetryAt)
	})
}
