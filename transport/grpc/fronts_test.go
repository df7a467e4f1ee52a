package grpcpace_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	grpcpace "github.com/sluice-go/sluice/transport/grpc"
	"github.com/sluice-go/sluice/transport/internal/engine"
)

// A saying is what a partner answers, over HTTP or gRPC.
type saying struct {
	refused bool
	wait    time.Duration // until the partner wants the next call; below 0: not stated
	spent   time.Duration // of one that is not refused: nothing remains for so long
	after   time.Duration // it is answered so late
	account bool          // it is about the account
}

var fine = saying{}

func says(wait time.Duration) saying { return saying{refused: true, wait: wait} }

// A front sends calls to hosts of a partner, which answers the n-th call of a host as it is told.
type front struct {
	send func(ctx context.Context, host string) error // nil, or why it was not sent
	seen func(host string) []time.Duration
}

// options are those of both fronts.
type options struct {
	maxHold  time.Duration
	adaptive float64
	inFlight int
}

// fronts are both, over the Waiter of a test.
var fronts = map[string]func(t *testing.T, w any, o options, answer func(host string, n int) saying) front{
	"HTTP": func(t *testing.T, w any, o options, answer func(string, int) saying) front {
		p := &httpPartner{started: time.Now(), answer: answer, at: map[string][]time.Duration{}}
		var opts []transport.Option
		if o.maxHold > 0 {
			opts = append(opts, transport.WithMaxHold(o.maxHold))
		}
		if o.adaptive > 0 {
			opts = append(opts, transport.WithAdaptiveRate(o.adaptive))
		}
		if o.inFlight > 0 {
			opts = append(opts, transport.WithMaxInFlight(o.inFlight))
		}
		var rt *transport.Transport
		if g, ok := w.(transport.KeyedWaiter); ok {
			rt = transport.NewKeyed(p, func(r *http.Request) string { return r.URL.Host }, g, opts...)
		} else {
			rt = transport.New(p, w.(transport.Waiter), opts...)
		}
		return front{p.seen2(), func(host string) []time.Duration { return p.seen(host) }}.with(func(ctx context.Context, host string) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/", nil)
			require.NoError(t, err)
			resp, err := rt.RoundTrip(req)
			if err == nil {
				resp.Body.Close()
			}
			return err
		})
	},
	"gRPC": func(t *testing.T, w any, o options, answer func(string, int) saying) front {
		var opts []grpcpace.Option
		if o.maxHold > 0 {
			opts = append(opts, grpcpace.WithMaxHold(o.maxHold))
		}
		if o.adaptive > 0 {
			opts = append(opts, grpcpace.WithAdaptiveRate(o.adaptive))
		}
		if o.inFlight > 0 {
			opts = append(opts, grpcpace.WithMaxInFlight(o.inFlight))
		}
		var p *grpcpace.Pacer
		if g, ok := w.(transport.KeyedWaiter); ok {
			p = grpcpace.NewKeyed(func(_ context.Context, _ string, cc *grpc.ClientConn) string {
				return strings.TrimPrefix(cc.CanonicalTarget(), "passthrough:///")
			}, g, opts...)
		} else {
			p = grpcpace.New(w.(transport.Waiter), opts...)
		}
		var mu sync.Mutex
		servers, conns := map[string]*server{}, map[string]*grpc.ClientConn{}
		reach := func(host string) *grpc.ClientConn {
			mu.Lock()
			defer mu.Unlock()
			if conns[host] == nil {
				s := &server{}
				s.answer = func(n int, stream grpc.ServerStream) error {
					a := answer(host, n)
					time.Sleep(a.after)
					switch {
					case !a.refused && a.spent > 0:
						stream.SetTrailer(metadata.Pairs("ratelimit-remaining", "0", "ratelimit-reset", seconds(a.spent)))
						return s.echo(stream)
					case !a.refused:
						return s.echo(stream)
					case a.wait < 0:
						return status.Error(codes.ResourceExhausted, "quota")
					}
					return refusal(t, codes.ResourceExhausted, a.wait)
				}
				began := time.Now()
				servers[host], conns[host] = s, dial(t, s, host, through(p)...)
				require.Equal(t, began, s.started)
			}
			return conns[host]
		}
		started := time.Now()
		return front{
			send: func(ctx context.Context, host string) error {
				err := send(ctx, reach(host))
				if _, local := err.(*grpcpace.Error); local || err != nil && ctx.Err() != nil {
					return err
				}
				return nil
			},
			seen: func(host string) (at []time.Duration) {
				mu.Lock()
				defer mu.Unlock()
				s := servers[host]
				for _, d := range s.seen() {
					at = append(at, s.started.Add(d).Sub(started))
				}
				return at
			},
		}
	},
}
