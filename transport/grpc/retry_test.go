package grpcpace_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	grpcpace "github.com/sluice-go/sluice/transport/grpc"
)

const retryable = `{"methodConfig": [{"name": [{"service": "sms.v1.Messages", "method": "Send"}], "retryPolicy": {
	"maxAttempts": 5, "initialBackoff": "0.01s", "maxBackoff": "0.01s", "backoffMultiplier": 1,
	"retryableStatusCodes": ["RESOURCE_EXHAUSTED", "UNAVAILABLE"]}}]}`

// What the service config says may be sent again is sent again, each attempt in a slot of its own
// and behind the hold, and what it does not say is not.
func TestRetriesThatTheServiceConfigAllows(t *testing.T) {
	exhausted := refusal(t, codes.ResourceExhausted, 5*time.Second)
	for name, c := range map[string]struct {
		err     error
		config  string
		retry   grpcpace.Retry
		trailer metadata.MD
		options []grpcpace.Option
		patient time.Duration // 0: without end
		want    []time.Duration
		code    codes.Code
	}{
		"refused twice":         {err: exhausted, config: retryable, want: []time.Duration{0, 5 * time.Second, 10 * time.Second}},
		"two attempts":          {err: exhausted, config: retryable, retry: grpcpace.Retry{Attempts: 2}, want: []time.Duration{0, 5 * time.Second}, code: codes.ResourceExhausted},
		"no config":             {err: exhausted, want: []time.Duration{0}, code: codes.ResourceExhausted},
		"another code":          {err: status.Error(codes.Internal, "oops"), config: retryable, want: []time.Duration{0}, code: codes.Internal},
		"stated codes":          {err: refusal(t, codes.Internal, time.Second), retry: grpcpace.Retry{Codes: []codes.Code{codes.Internal}}, want: []time.Duration{0, time.Second, 2 * time.Second}},
		"other stated codes":    {err: exhausted, config: retryable, retry: grpcpace.Retry{Codes: []codes.Code{codes.Internal}}, want: []time.Duration{0}, code: codes.ResourceExhausted},
		"do not retry":          {err: status.Error(codes.ResourceExhausted, "quota"), config: retryable, trailer: metadata.Pairs("grpc-retry-pushback-ms", "-1"), want: []time.Duration{0}, code: codes.ResourceExhausted},
		"above the cap":         {err: exhausted, config: retryable, options: []grpcpace.Option{grpcpace.WithMaxHold(time.Second)}, want: []time.Duration{0}, code: codes.ResourceExhausted},
		"too late":              {err: exhausted, config: retryable, patient: 5 * time.Second, want: []time.Duration{0}, code: codes.ResourceExhausted},
		"a place is given back": {err: exhausted, config: retryable, options: []grpcpace.Option{grpcpace.WithMaxInFlight(1)}, want: []time.Duration{0, 5 * time.Second, 10 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				srv := &server{}
				srv.answer = func(n int, s grpc.ServerStream) error {
					if n > 2 {
						return srv.echo(s)
					}
					s.SetTrailer(c.trailer)
					return c.err
				}
				pace := every(t, T)
				p := grpcpace.New(pace, append(c.options, grpcpace.WithRetry(c.retry))...)
				opts := through(p)
				if c.config != "" {
					opts = append(opts, grpc.WithDefaultServiceConfig(c.config))
				}
				conn := dial(t, srv, "a", opts...)
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if c.patient > 0 {
					ctx, cancel = context.WithTimeout(ctx, c.patient)
				}
				defer cancel()
				require.Equal(t, c.code, status.Code(send(ctx, conn)))
				require.Equal(t, c.want, srv.seen())
				require.Equal(t, c.want[len(c.want)-1], time.Since(srv.started), "told at once")
				require.EqualValues(t, len(c.want), pace.Stats().Left)
				require.Zero(t, pace.Stats().InFlight)
			})
		})
	}
}

// Retries are bounded to a share of first attempts.
func TestRetriesHaveABudget(t *testing.T) {
	bubble(t, func(t *testing.T) {
		srv := &server{answer: func(int, grpc.ServerStream) error { return status.Error(codes.Unavailable, "down") }}
		conn := dial(t, srv, "a", through(grpcpace.New(every(t, T), grpcpace.WithRetry(grpcpace.Retry{Attempts: 5, Codes: []codes.Code{codes.Unavailable}})))...)
		const rpcs = 20
		for range rpcs {
			require.Equal(t, codes.Unavailable, status.Code(send(t.Context(), conn)))
		}
		require.Len(t, srv.seen(), rpcs+10+(rpcs-1)/10)
	})
}

// A stream has its place until it has ended, whoever ends it.
func TestAStreamKeepsItsPlace(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, s grpc.ClientStream, cancel func()){
		"received to its end": func(t *testing.T, s grpc.ClientStream, _ func()) {
			require.NoError(t, s.CloseSend())
			drain(s)
		},
		"cancelled": func(_ *testing.T, _ grpc.ClientStream, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				srv, pace := &server{}, every(t, T)
				conn := dial(t, srv, "a", through(grpcpace.New(pace, grpcpace.WithMaxInFlight(1), grpcpace.WithPacedMessages()))...)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s, err := open(ctx, conn)
				require.NoError(t, err)
				for range 3 { // which take a turn, and no place
					require.NoError(t, s.SendMsg(wrapperspb.String("hi")))
					require.NoError(t, s.RecvMsg(&wrapperspb.StringValue{}))
				}
				time.AfterFunc(time.Minute, func() { end(t, s, cancel) })
				require.NoError(t, send(t.Context(), conn))
				require.Equal(t, 200*ms+time.Minute, srv.seen()[1])
				require.Zero(t, pace.Stats().InFlight)
			})
		})
	}
}

// A stream that is not made, or whose interceptor panics, gives its place back.
func TestAStreamThatIsNotMadeHasNoPlace(t *testing.T) {
	for name, below := range map[string]grpc.StreamClientInterceptor{
		"refused": func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, grpc.Streamer, ...grpc.CallOption) (grpc.ClientStream, error) {
			return nil, status.Error(codes.Internal, "no")
		},
		"panics": func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, grpc.Streamer, ...grpc.CallOption) (grpc.ClientStream, error) {
			panic("no")
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				pace := every(t, T, shaper.WithMaxInFlight(1))
				conn := dial(t, &server{}, "a", through(grpcpace.New(pace), grpc.WithChainStreamInterceptor(below))...)
				func() {
					defer func() { _ = recover() }()
					_, err := open(t.Context(), conn)
					require.Error(t, err)
				}()
				require.Zero(t, pace.Stats().InFlight)
			})
		})
	}
}

// An RPC is settled as a request is, by its context.
func TestSettle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		srv, pace := &server{}, every(t, T, shaper.WithBurst(10))
		conn := dial(t, srv, "a", through(grpcpace.New(pace, grpcpace.WithCost(func(context.Context, string, any) int64 { return 10 })))...)
		for range 3 {
			ctx := transport.ContextWithSettle(t.Context())
			require.NoError(t, send(ctx, conn))
			require.NoError(t, transport.Settle(ctx, 2))
			require.ErrorIs(t, transport.Settle(ctx, 2), shaper.ErrFinal)
		}
		require.Equal(t, []time.Duration{0, 2 * T, 4 * T}, srv.seen())
	})
}

// A server that answers about the one RPC serves: it ends a back-off, as over HTTP.
func TestWhatEndsABackOff(t *testing.T) {
	for code, ends := range map[codes.Code]bool{codes.NotFound: true, codes.InvalidArgument: true, codes.Internal: false, codes.Unavailable: false} {
		bubble(t, func(t *testing.T) {
			srv := &server{}
			srv.answer = func(n int, _ grpc.ServerStream) error {
				if n == 3 {
					return status.Error(code, "oops")
				}
				return status.Error(codes.ResourceExhausted, "quota")
			}
			conn := dial(t, srv, "a", through(grpcpace.New(every(t, T)))...)
			for range 5 {
				require.Error(t, send(t.Context(), conn))
			}
			seen := srv.seen()
			require.Equal(t, ends, seen[4]-seen[3] < 2*time.Second, code)
		})
	}
}
