package grpcpace_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	grpcpace "github.com/sluice-go/sluice/transport/grpc"
)

// The first message of a stream is a success, long before the stream has ended.
func TestAMessageResetsTheBackOff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		srv := &server{}
		srv.answer = func(n int, s grpc.ServerStream) error {
			if n == 4 {
				return srv.echo(s)
			}
			return status.Error(codes.ResourceExhausted, "quota")
		}
		conn := dial(t, srv, "a", through(grpcpace.New(every(t, T)))...)
		for range 3 {
			require.Error(t, send(t.Context(), conn)) // back-off 1 s, 2 s, 4 s
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s, err := open(ctx, conn)
		require.NoError(t, err)
		require.NoError(t, s.SendMsg(wrapperspb.String("hi")))
		require.NoError(t, s.RecvMsg(&wrapperspb.StringValue{}))

		require.Error(t, send(t.Context(), conn))
		_ = send(t.Context(), conn)
		seen := srv.seen()
		require.Less(t, seen[5]-seen[4], 2*time.Second)
	})
}

// A refusal can come from where the stream is made: an interceptor further down that asks
// another server, for example.
func TestAStreamThatIsRefusedWhenItIsMade(t *testing.T) {
	bubble(t, func(t *testing.T) {
		below := func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, grpc.Streamer, ...grpc.CallOption) (grpc.ClientStream, error) {
			return nil, refusal(t, codes.ResourceExhausted, time.Minute)
		}
		pace := every(t, T)
		conn := dial(t, &server{}, "a", through(grpcpace.New(pace), grpc.WithChainStreamInterceptor(below))...)
		_, err := open(t.Context(), conn)
		require.Equal(t, codes.ResourceExhausted, status.Code(err))
		require.Equal(t, time.Minute, pace.Delay())
	})
}
