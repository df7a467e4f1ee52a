package grpcpace_test

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	grpcpace "github.com/sluice-go/sluice/transport/grpc"
)

// gRPC sends an RPC again whose stream the server has refused to take, whatever its retry
// policy: not processed for sure. The server has seen it twice, and it is charged twice.
func TestTransparentRetriesAreCharged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		pace := every(t, time.Second)
		client, server := net.Pipe()
		seen := make(chan int, 1)
		go func() { seen <- refuseStream(server) }()
		conn, err := grpc.NewClient("passthrough:///a", through(grpcpace.New(pace),
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDisableRetry(),
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return client, nil }))...)
		require.NoError(t, err)
		require.Equal(t, codes.NotFound, status.Code(send(t.Context(), conn)))
		require.Equal(t, 2*time.Second, pace.Delay())
		require.NoError(t, conn.Close())
		require.Equal(t, 2, <-seen)
	})
}

// refuseStream is a server in frames: it refuses the first stream, and answers NOT_FOUND
// to others. It returns how many it has seen.
func refuseStream(conn net.Conn) (streams int) {
	defer conn.Close()
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := conn.Read(preface); err != nil {
		return 0
	}
	// Written by a goroutine of its own: a pipe holds nothing, and the client writes too.
	frames := make(chan func(*http2.Framer) error, 16)
	defer close(frames)
	go func() {
		w := http2.NewFramer(conn, nil)
		for write := range frames {
			_ = write(w)
		}
	}()
	frames <- func(w *http2.Framer) error { return w.WriteSettings() }
	for r := http2.NewFramer(nil, conn); ; {
		f, err := r.ReadFrame()
		if err != nil {
			return streams
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				frames <- (*http2.Framer).WriteSettingsAck
			}
		case *http2.HeadersFrame:
			streams++
		case *http2.DataFrame:
			// Answered once the request is there: gRPC takes what comes while it sends for
			// an error of its own now and then.
			id := f.StreamID
			switch {
			case !f.StreamEnded():
			case streams == 1:
				frames <- func(w *http2.Framer) error { return w.WriteRSTStream(id, http2.ErrCodeRefusedStream) }
			default:
				frames <- func(w *http2.Framer) error {
					return w.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: notFound(), EndHeaders: true, EndStream: true})
				}
			}
		}
	}
}

func notFound() []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for _, f := range [][2]string{{":status", "200"}, {"content-type", "application/grpc"}, {"grpc-status", "5"}} {
		_ = e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	return b.Bytes()
}
