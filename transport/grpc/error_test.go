package grpcpace_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	grpcpace "github.com/sluice-go/sluice/transport/grpc"
)

// What is refused here has a status, the typed error and the Waiter's reason, and does not
// reach the server.
func TestLocalRefusals(t *testing.T) {
	for _, c := range []struct {
		name    string
		timeout time.Duration
		options []shaper.Option
		code    codes.Code
		matches []error
		timely  bool
	}{
		{"line full", 0, []shaper.Option{shaper.WithQueue(1)}, codes.ResourceExhausted, []error{shaper.ErrQueueFull}, false},
		{"longest delay", 0, []shaper.Option{shaper.WithMaxDelay(time.Second)}, codes.ResourceExhausted, []error{shaper.ErrMaxDelay}, true},
		{"deadline", time.Minute, nil, codes.DeadlineExceeded, []error{shaper.ErrDeadline, context.DeadlineExceeded}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				pace := every(t, time.Hour, c.options...)
				pace.Charge(2)
				srv := &server{}
				conn := dial(t, srv, "a", through(grpcpace.New(pace))...)
				ctx := t.Context()
				if c.timeout > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.timeout)
					defer cancel()
				}
				for _, call := range []func() error{
					func() error { return send(ctx, conn) },
					func() error { _, err := open(ctx, conn); return err },
				} {
					err := call()
					require.Equal(t, c.code, status.Code(err))
					for _, target := range append(c.matches, transport.ErrNotSent) {
						require.ErrorIs(t, err, target)
					}
					var notSent *transport.Error
					require.ErrorAs(t, err, &notSent)
					require.Equal(t, 2*time.Hour, notSent.Wait)
					require.Equal(t, "passthrough:///a", notSent.Key)
					require.Equal(t, time.Now().Add(2*time.Hour), notSent.RetryAt)
					var mine *grpcpace.Error
					require.ErrorAs(t, err, &mine)
					require.Equal(t, c.timely, mine.Timeout())
					require.Equal(t, 2*time.Hour, retryDelay(t, err))
					require.Zero(t, time.Since(srv.started), "told at once")
				}
				require.Empty(t, srv.seen())
			})
		})
	}
}

func retryDelay(t *testing.T, err error) time.Duration {
	t.Helper()
	details := status.Convert(err).Details()
	require.Len(t, details, 1)
	return details[0].(*errdetails.RetryInfo).GetRetryDelay().AsDuration()
}

// The hold that a refusal has set is told to an RPC whose deadline lies before its end.
func TestHeldUntil(t *testing.T) {
	bubble(t, func(t *testing.T) {
		srv := (&server{}).refuseFirst(1, refusal(t, codes.ResourceExhausted, time.Hour))
		conn := dial(t, srv, "a", through(grpcpace.New(every(t, T)))...)
		require.Error(t, send(t.Context(), conn))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var notSent *transport.Error
		require.ErrorAs(t, send(ctx, conn), &notSent)
		require.Equal(t, time.Now().Add(time.Hour), notSent.HeldUntil)
	})
}

func TestCancelledInTheLine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		pace := every(t, time.Hour)
		pace.Charge(1)
		srv := &server{}
		conn := dial(t, srv, "a", through(grpcpace.New(pace))...)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		err := send(ctx, conn)
		require.Equal(t, codes.Canceled, status.Code(err))
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, transport.ErrNotSent)
		var notSent *transport.Error
		require.ErrorAs(t, err, &notSent)
		require.Equal(t, time.Second, notSent.Waited)
		require.Empty(t, status.Convert(err).Details())
		require.Empty(t, srv.seen())
	})
}

// A context that has ended before gets the status that gRPC gives it, and takes no slot.
func TestEndedBefore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		pace := every(t, T)
		srv := &server{}
		paced, plain := dial(t, srv, "a", through(grpcpace.New(pace))...), dial(t, &server{}, "b")
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		late, cancel := context.WithTimeout(t.Context(), -time.Second)
		defer cancel()
		for _, ctx := range []context.Context{cancelled, late} {
			err := send(ctx, paced)
			require.Equal(t, status.Code(send(ctx, plain)), status.Code(err))
			require.False(t, errors.Is(err, transport.ErrNotSent))
		}
		require.Zero(t, pace.Delay())
		require.Empty(t, srv.seen())
	})
}

// Waiting for a connection comes after the turn, and fails fast or not as the caller says.
func TestWaitForReady(t *testing.T) {
	bubble(t, func(t *testing.T) {
		conn, err := grpc.NewClient("passthrough:///nowhere", append(grpcpace.New(every(t, T)).DialOptions(), nowhere()...)...)
		require.NoError(t, err)
		defer conn.Close()
		require.Equal(t, codes.Unavailable, status.Code(send(t.Context(), conn)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err = send(ctx, conn, grpc.WaitForReady(true))
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))
		require.False(t, errors.Is(err, transport.ErrNotSent))
	})
}
