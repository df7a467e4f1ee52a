package grpcpace_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	"github.com/sluice-go/sluice/transport/feedback"
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
		var refused *transport.Error
		require.ErrorAs(t, err, &refused)
		require.True(t, refused.Sent)
		require.NotErrorIs(t, err, transport.ErrNotSent, "the start of the stream, and a message, have left")
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

// An option that the Waiter cannot follow is an error when the Pacer is made.
func TestOptionsThatTheWaiterCannotFollow(t *testing.T) {
	two := grpcpace.WithCost(func(context.Context, string, any) int64 { return 2 })
	hold := grpcpace.WithMaxHold(time.Minute)
	plain, full := waitOnly{every(t, T)}, every(t, T)
	for want, make := range map[string]func(){
		"grpcpace: maximum hold 0s: must be positive":                                                   func() { grpcpace.New(full, grpcpace.WithMaxHold(0)) },
		"grpcpace: a cost needs a Waiter with WaitN: not a grpcpace_test.waitOnly":                      func() { grpcpace.New(plain, two) },
		"grpcpace: a maximum hold needs a Waiter with HoldUntil: not a grpcpace_test.waitOnly":          func() { grpcpace.New(plain, hold) },
		"grpcpace: a maximum hold of 1m0s is about answers: none is looked at with WithClassifier(nil)": func() { grpcpace.New(full, hold, grpcpace.WithClassifier(nil)) },
	} {
		require.PanicsWithValue(t, want, make)
	}
	require.NotPanics(t, func() { grpcpace.New(full, two, hold); grpcpace.New(plain, grpcpace.WithPacedMessages()) })
}

// limited refuses as x/time's *rate.Limiter does, and has the methods by which it is known.
type limited struct{}

func (limited) Wait(context.Context) error {
	return errors.New("rate: Wait(n=1) would exceed context deadline")
}
func (limited) Burst() int      { return 1 }
func (limited) Tokens() float64 { return 0 }

// A refusal for the deadline is one, whatever the type of its error.
func TestLimiterOfXTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		conn := dial(t, &server{}, "a", through(grpcpace.New(limited{}))...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := send(ctx, conn)
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, transport.ErrNotSent)
		require.Equal(t, codes.ResourceExhausted, status.Code(send(t.Context(), conn)), "there is no deadline")
	})
}

// What another Pacer below has refused is no answer of the server's, a message of a stream
// neither.
func TestRefusalOfAPacerBelowIsNotHeard(t *testing.T) {
	bubble(t, func(t *testing.T) {
		above := every(t, T)
		heard := grpcpace.WithClassifier(func(*status.Status, metadata.MD) feedback.Verdict {
			return feedback.Verdict{Refused: true, Stated: true, Wait: time.Hour}
		})
		below := func(context.Context, string, any, any, *grpc.ClientConn, grpc.UnaryInvoker, ...grpc.CallOption) error {
			return &transport.Error{Reason: errors.New("full"), Sent: true}
		}
		opts := append(through(grpcpace.New(above, heard)), grpc.WithChainUnaryInterceptor(below))
		require.Error(t, send(t.Context(), dial(t, &server{}, "a", opts...)))
		require.Zero(t, above.Stats().HeldUntil)
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
}

// group makes a Group of one call every d for each of so many keys at most.
func group(t *testing.T, d time.Duration, keys int) *shaper.Group[string] {
	t.Helper()
	g, err := shaper.NewGroup[string](scheduler.Every(d), shaper.WithMaxKeys(keys))
	require.NoError(t, err)
	return g
}
