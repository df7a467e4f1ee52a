package grpcpace_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	grpcpace "github.com/sluice-go/sluice/transport/grpc"
)

// nowhere has no server behind it.
func nowhere() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return nil, errors.New("no server") }),
	}
}

// What gRPC sends again by itself is charged: the next RPC leaves behind it.
func TestAttemptsAreCharged(t *testing.T) {
	const retrying = `{"methodConfig":[{"name":[{}],"retryPolicy":{"maxAttempts":3,"initialBackoff":"0.001s","maxBackoff":"0.001s","backoffMultiplier":1,"retryableStatusCodes":["ABORTED"]}}]}`
	bubble(t, func(t *testing.T) {
		pace := every(t, time.Second)
		srv := (&server{}).refuseFirst(2, status.Error(codes.Aborted, "again"))
		conn := dial(t, srv, "a", through(grpcpace.New(pace), grpc.WithDefaultServiceConfig(retrying))...)
		require.NoError(t, send(t.Context(), conn))
		require.NoError(t, send(t.Context(), conn))
		seen := srv.seen()
		require.Len(t, seen, 4)
		require.Less(t, seen[2], time.Second)
		require.Equal(t, 3*time.Second, seen[3])
	})
}

// An RPC that did not pass an interceptor of the Pacer is not charged to it.
func TestForeignAttemptsAreNotCharged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		pace := every(t, time.Second)
		conn := dial(t, &server{}, "a", grpc.WithStatsHandler(grpcpace.New(pace).StatsHandler()))
		require.NoError(t, send(t.Context(), conn))
		require.NoError(t, send(t.Context(), conn))
		require.Zero(t, pace.Delay())
	})
}
