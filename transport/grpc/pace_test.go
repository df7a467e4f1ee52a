package grpcpace_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	grpcpace "github.com/sluice-go/sluice/transport/grpc"
)

const (
	ms = time.Millisecond
	T  = 100 * ms
)

func every(t *testing.T, d time.Duration, opts ...shaper.Option) *shaper.Shaper {
	t.Helper()
	s, err := shaper.New(scheduler.Every(d), opts...)
	require.NoError(t, err)
	return s
}

// bubble runs f on fake time. What f leaves behind ends before the bubble does.
func bubble(t *testing.T, f func(t *testing.T)) { t.Helper(); synctest.Test(t, f) }

func TestUnaryRPCsLeaveApart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		srv := &server{}
		conn := dial(t, srv, "a", through(grpcpace.New(every(t, T)))...)
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { require.NoError(t, send(t.Context(), conn)) })
		}
		all.Wait()
		require.Equal(t, []time.Duration{0, T, 2 * T, 3 * T, 4 * T}, srv.seen())
	})
}

func TestStreamsStartApart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		srv := &server{}
		conn := dial(t, srv, "a", through(grpcpace.New(every(t, T)))...)
		for range 3 {
			s, err := open(t.Context(), conn)
			require.NoError(t, err)
			for range 10 { // of no concern
				require.NoError(t, s.SendMsg(wrapperspb.String("hi")))
			}
			require.NoError(t, s.CloseSend())
			drain(s)
		}
		require.Equal(t, []time.Duration{0, T, 2 * T}, srv.seen())
		require.Len(t, srv.messages, 30)
	})
}

// drain receives until the stream has ended, and returns how.
func drain(s grpc.ClientStream) error {
	for {
		if err := s.RecvMsg(&wrapperspb.StringValue{}); err != nil {
			return err
		}
	}
}

func TestMessagesLeaveApart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		srv := &server{}
		conn := dial(t, srv, "a", through(grpcpace.New(every(t, T), grpcpace.WithPacedMessages()))...)
		s, err := open(t.Context(), conn)
		require.NoError(t, err)
		for range 4 {
			require.NoError(t, s.SendMsg(wrapperspb.String("hi")))
		}
		require.NoError(t, s.CloseSend())
		drain(s)
		require.Equal(t, []time.Duration{0}, srv.seen())
		require.Equal(t, []time.Duration{0, T, 2 * T, 3 * T}, srv.messages)
	})
}

// A refused message is not sent, and the stream goes on.
func TestARefusedMessageLeavesTheStream(t *testing.T) {
	bubble(t, func(t *testing.T) {
		srv, pace := &server{}, every(t, T)
		conn := dial(t, srv, "a", through(grpcpace.New(pace, grpcpace.WithPacedMessages()))...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s, err := open(ctx, conn)
		require.NoError(t, err)
		require.NoError(t, s.SendMsg(wrapperspb.String("1")))

		pace.HoldUntil(time.Now().Add(time.Hour))
		err = s.SendMsg(wrapperspb.String("2"))
		require.ErrorIs(t, err, transport.ErrNotSent)
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))

		pace.Resume()
		require.NoError(t, s.SendMsg(wrapperspb.String("3")))
		require.NoError(t, s.CloseSend())
		var got []string
		for m := (&wrapperspb.StringValue{}); s.RecvMsg(m) == nil; {
			got = append(got, m.GetValue())
		}
		require.Equal(t, []string{"1", "3"}, got)
	})
}

func TestCost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		srv := &server{}
		parts := func(_ context.Context, m string, req any) int64 {
			require.Equal(t, method, m)
			return int64(len(req.(*wrapperspb.StringValue).GetValue()))
		}
		conn := dial(t, srv, "a", through(grpcpace.New(every(t, T), grpcpace.WithCost(parts)))...)
		for range 3 {
			require.NoError(t, send(t.Context(), conn)) // "hi" costs 2
		}
		require.Equal(t, []time.Duration{0, 2 * T, 4 * T}, srv.seen())

		err := conn.Invoke(t.Context(), method, wrapperspb.String(""), &wrapperspb.StringValue{})
		require.ErrorIs(t, err, transport.ErrCost)
		require.Len(t, srv.seen(), 3)
	})
}

// waitOnly is a Waiter without WaitN.
type waitOnly struct{ w transport.Waiter }

func (w waitOnly) Wait(ctx context.Context) error { return w.w.Wait(ctx) }

func TestCostNeedsWaitN(t *testing.T) {
	bubble(t, func(t *testing.T) {
		two := func(context.Context, string, any) int64 { return 2 }
		srv := &server{}
		conn := dial(t, srv, "a", through(grpcpace.New(waitOnly{every(t, T)}, grpcpace.WithCost(two)))...)
		require.ErrorIs(t, send(t.Context(), conn), transport.ErrCost)
		require.Empty(t, srv.seen())
	})
}

func TestEachServerHasAPaceOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		group, err := shaper.NewGroup[string](scheduler.Every(T))
		require.NoError(t, err)
		p := grpcpace.NewKeyed(nil, group)
		a, b := &server{}, &server{}
		toA, toB := dial(t, a, "a", through(p)...), dial(t, b, "b", through(p)...)
		for range 2 {
			require.NoError(t, send(t.Context(), toA))
			require.NoError(t, send(t.Context(), toB))
		}
		require.Equal(t, []time.Duration{0, T}, a.seen())
		require.Equal(t, []time.Duration{0, T}, b.seen())
		require.Equal(t, 2, group.Stats().Keys)
	})
}

func TestMethodKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		group, err := shaper.NewGroup[string](scheduler.Every(T))
		require.NoError(t, err)
		srv := &server{}
		conn := dial(t, srv, "a", through(grpcpace.NewKeyed(grpcpace.MethodKey, group))...)
		require.NoError(t, send(t.Context(), conn))
		require.NoError(t, conn.Invoke(t.Context(), "/sms.v1.Messages/Get", wrapperspb.String(""), &wrapperspb.StringValue{}))
		require.NoError(t, send(t.Context(), conn))
		require.Equal(t, []time.Duration{0, 0, T}, srv.seen())
	})
}

func TestNilWaiterPanics(t *testing.T) {
	require.Panics(t, func() { grpcpace.New(nil) })
	require.Panics(t, func() { grpcpace.NewKeyed(nil, nil) })
	require.Panics(t, func() { grpcpace.New(waitOnly{}, grpcpace.WithMaxHold(0)) })
}
