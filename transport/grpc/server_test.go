package grpcpace_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	grpcpace "github.com/sluice-go/sluice/transport/grpc"
)

// A server answers every RPC, of whatever name, and keeps when each of them arrived. In a
// bubble that is exact.
type server struct {
	started time.Time
	answer  func(n int, s grpc.ServerStream) error // to the n-th RPC; nil: echo

	mu       sync.Mutex
	arrivals []time.Duration // guarded by mu
	messages []time.Duration // guarded by mu
}

func (s *server) handle(_ any, stream grpc.ServerStream) error {
	s.mu.Lock()
	s.arrivals = append(s.arrivals, time.Since(s.started))
	n := len(s.arrivals)
	s.mu.Unlock()
	if s.answer != nil {
		return s.answer(n, stream)
	}
	return s.echo(stream)
}

// echo sends each message back.
func (s *server) echo(stream grpc.ServerStream) error {
	for {
		m := &wrapperspb.StringValue{}
		if stream.RecvMsg(m) != nil {
			return nil
		}
		s.mu.Lock()
		s.messages = append(s.messages, time.Since(s.started))
		s.mu.Unlock()
		if err := stream.SendMsg(m); err != nil {
			return err
		}
	}
}

func (s *server) seen() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Duration(nil), s.arrivals...)
}

// dial starts the server and returns a connection to it. Both end with the test, or with
// the bubble.
func dial(t *testing.T, s *server, target string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	s.started = time.Now()
	listener := bufconn.Listen(64 << 10)
	srv := grpc.NewServer(grpc.UnknownServiceHandler(s.handle))
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(listener)
	}()
	conn, err := grpc.NewClient("passthrough:///"+target, append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
	}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, conn.Close())
		srv.Stop()
		<-served
	})
	return conn
}

const method = "/sms.v1.Messages/Send"

// send makes a unary RPC.
func send(ctx context.Context, conn *grpc.ClientConn, opts ...grpc.CallOption) error {
	return conn.Invoke(ctx, method, wrapperspb.String("hi"), &wrapperspb.StringValue{}, opts...)
}

// open starts a stream in both directions.
func open(ctx context.Context, conn *grpc.ClientConn) (grpc.ClientStream, error) {
	return conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/sms.v1.Messages/Chat")
}

// refusal is an answer that states when to come back.
func refusal(t *testing.T, code codes.Code, after time.Duration) error {
	s, err := status.New(code, "quota").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
	require.NoError(t, err)
	return s.Err()
}

// refuseFirst refuses the first n RPCs.
func (s *server) refuseFirst(n int, err error) *server {
	s.answer = func(i int, stream grpc.ServerStream) error {
		if i <= n {
			return err
		}
		return s.echo(stream)
	}
	return s
}

// through returns the options that have a connection paced.
func through(p *grpcpace.Pacer, opts ...grpc.DialOption) []grpc.DialOption {
	return append(p.DialOptions(), opts...)
}
