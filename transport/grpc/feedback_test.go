package grpcpace_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport/feedback"
	grpcpace "github.com/sluice-go/sluice/transport/grpc"
)

// After a refusal no RPC arrives before the stated time, and then one leaves every T.
func TestARefusalHoldsTheLine(t *testing.T) {
	for _, code := range []codes.Code{codes.ResourceExhausted, codes.Unavailable} {
		t.Run(code.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				srv := (&server{}).refuseFirst(1, refusal(t, code, 5*time.Second))
				conn := dial(t, srv, "a", through(grpcpace.New(every(t, T)))...)
				var all sync.WaitGroup
				var refused, done int
				var mu sync.Mutex
				for range 4 {
					all.Go(func() {
						err := send(t.Context(), conn)
						mu.Lock()
						defer mu.Unlock()
						if err == nil {
							done++
						} else if status.Code(err) == code { // as it came
							refused++
						}
					})
				}
				all.Wait()
				require.Equal(t, []int{1, 3}, []int{refused, done})
				require.Equal(t, []time.Duration{0, 5 * time.Second, 5*time.Second + T, 5*time.Second + 2*T}, srv.seen())
			})
		})
	}
}

func TestARefusalOfAStreamHoldsTheLine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		srv := (&server{}).refuseFirst(1, refusal(t, codes.ResourceExhausted, 5*time.Second))
		conn := dial(t, srv, "a", through(grpcpace.New(every(t, T)))...)
		s, err := open(t.Context(), conn)
		require.NoError(t, err)
		require.Equal(t, codes.ResourceExhausted, status.Code(drain(s)))
		require.NoError(t, send(t.Context(), conn))
		require.Equal(t, []time.Duration{0, 5 * time.Second}, srv.seen())
	})
}

func TestOtherKeysGoOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		group, err := shaper.NewGroup[string](scheduler.Every(T))
		require.NoError(t, err)
		p := grpcpace.NewKeyed(nil, group)
		a := (&server{}).refuseFirst(1, refusal(t, codes.ResourceExhausted, 5*time.Second))
		b := &server{}
		toA, toB := dial(t, a, "a", through(p)...), dial(t, b, "b", through(p)...)
		require.Error(t, send(t.Context(), toA))
		require.NoError(t, send(t.Context(), toB))
		require.NoError(t, send(t.Context(), toA))
		require.Equal(t, []time.Duration{0, 5 * time.Second}, a.seen())
		require.Equal(t, []time.Duration{0}, b.seen())
	})
}

func TestPushbackTrailer(t *testing.T) {
	for name, open := range map[string]bool{"unary": false, "stream": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				srv := &server{}
				srv.answer = func(n int, s grpc.ServerStream) error {
					if n > 1 {
						return srv.echo(s)
					}
					s.SetTrailer(metadata.Pairs("grpc-retry-pushback-ms", "3000"))
					return status.Error(codes.ResourceExhausted, "quota")
				}
				conn := dial(t, srv, "a", through(grpcpace.New(every(t, T)))...)
				var err error
				if open {
					err = chat(t, conn)
				} else {
					var mine metadata.MD // the caller's own view of it
					err = send(t.Context(), conn, grpc.Trailer(&mine))
					require.Equal(t, []string{"3000"}, mine.Get("grpc-retry-pushback-ms"))
				}
				require.Equal(t, codes.ResourceExhausted, status.Code(err))
				require.NoError(t, send(t.Context(), conn))
				require.Equal(t, []time.Duration{0, 3 * time.Second}, srv.seen())
			})
		})
	}
}

// chat opens a stream and returns how it ends.
func chat(t *testing.T, conn *grpc.ClientConn) error {
	s, err := open(t.Context(), conn)
	require.NoError(t, err)
	return drain(s)
}

// Without a time: 1 s, doubled with each refusal up to a minute, up to a quarter on top,
// and from the start again after a success.
func TestBackOff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		srv := &server{}
		srv.answer = func(n int, s grpc.ServerStream) error {
			if n == 9 {
				return srv.echo(s)
			}
			return status.Error(codes.ResourceExhausted, "quota")
		}
		conn := dial(t, srv, "a", through(grpcpace.New(every(t, T)))...)
		for range 11 {
			_ = send(t.Context(), conn)
		}
		seen := srv.seen()
		for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
			gap, want := seen[i+1]-seen[i], want*time.Second
			require.GreaterOrEqual(t, gap, min(want, 45*time.Second), "gap %d", i) // at the top the jitter comes off
			require.LessOrEqual(t, gap, min(want*5/4, time.Minute), "gap %d", i)
		}
		require.Equal(t, T, seen[9]-seen[8], "a success holds nothing")
		require.GreaterOrEqual(t, seen[10]-seen[9], time.Second)
		require.Less(t, seen[10]-seen[9], 2*time.Second)
	})
}

// RPCs that were sent before a refusal was known are no further step when they are
// refused too.
func TestOneStepPerEpoch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		srv := &server{}
		srv.answer = func(n int, s grpc.ServerStream) error {
			if n > 5 {
				return srv.echo(s)
			}
			time.Sleep(time.Second) // all five are on their way by then
			return status.Error(codes.ResourceExhausted, "quota")
		}
		conn := dial(t, srv, "a", through(grpcpace.New(every(t, T)))...)
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { require.Error(t, send(t.Context(), conn)) })
		}
		all.Wait()
		require.NoError(t, send(t.Context(), conn))
		after := srv.seen()[5] - time.Second // since the first refusal
		require.GreaterOrEqual(t, after, time.Second)
		require.LessOrEqual(t, after, 1250*ms)
	})
}

func TestMaxHold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		srv := (&server{}).refuseFirst(1, refusal(t, codes.ResourceExhausted, 1000*time.Hour))
		conn := dial(t, srv, "a", through(grpcpace.New(every(t, T)))...)
		require.Error(t, send(t.Context(), conn))
		require.NoError(t, send(t.Context(), conn))
		require.Equal(t, []time.Duration{0, time.Hour}, srv.seen())
	})
	bubble(t, func(t *testing.T) {
		srv := (&server{}).refuseFirst(1, refusal(t, codes.ResourceExhausted, time.Hour))
		conn := dial(t, srv, "a", through(grpcpace.New(every(t, T), grpcpace.WithMaxHold(time.Minute)))...)
		require.Error(t, send(t.Context(), conn))
		require.NoError(t, send(t.Context(), conn))
		require.Equal(t, []time.Duration{0, time.Minute}, srv.seen())
	})
}

func TestDefault(t *testing.T) {
	pushback := func(values ...string) metadata.MD { return metadata.MD{"grpc-retry-pushback-ms": values} }
	stated := func(d time.Duration) feedback.Verdict { return feedback.Verdict{Refused: true, Stated: true, Wait: d} }
	refused, nothing := feedback.Verdict{Refused: true}, feedback.Verdict{}
	final := feedback.Verdict{Refused: true, Final: true}
	exhausted := status.Error(codes.ResourceExhausted, "quota")
	for name, c := range map[string]struct {
		err     error
		trailer metadata.MD
		want    feedback.Verdict
	}{
		"retry info":                 {refusal(t, codes.ResourceExhausted, 5*time.Second), nil, stated(5 * time.Second)},
		"of zero":                    {refusal(t, codes.ResourceExhausted, 0), nil, stated(0)},
		"negative":                   {refusal(t, codes.ResourceExhausted, -time.Second), nil, refused},
		"before pushback":            {refusal(t, codes.ResourceExhausted, time.Second), pushback("9000"), stated(time.Second)},
		"negative, then pushback":    {refusal(t, codes.ResourceExhausted, -time.Second), pushback("9000"), stated(9 * time.Second)},
		"no time":                    {exhausted, nil, refused},
		"pushback":                   {exhausted, pushback("250"), stated(250 * ms)},
		"pushback: do not retry":     {exhausted, pushback("-1"), final},
		"pushback: garbage":          {exhausted, pushback("soon"), final},
		"pushback: too large":        {exhausted, pushback("99999999999999999999"), final},
		"pushback: two":              {exhausted, pushback("1", "2"), final},
		"unavailable, no time":       {status.Error(codes.Unavailable, "connection refused"), nil, nothing},
		"unavailable, retry info":    {refusal(t, codes.Unavailable, time.Second), nil, stated(time.Second)},
		"unavailable, pushback":      {status.Error(codes.Unavailable, "draining"), pushback("250"), stated(250 * ms)},
		"internal, retry info":       {refusal(t, codes.Internal, time.Second), nil, stated(time.Second)},
		"internal, no time":          {status.Error(codes.Internal, "oops"), nil, nothing},
		"unknown, pushback":          {status.Error(codes.Unknown, "oops"), pushback("250"), stated(250 * ms)},
		"too late, retry info":       {refusal(t, codes.DeadlineExceeded, time.Second), nil, stated(time.Second)},
		"denied, retry info":         {refusal(t, codes.PermissionDenied, time.Second), nil, stated(time.Second)},
		"denied, no time":            {status.Error(codes.PermissionDenied, "no"), nil, nothing},
		"aborted, retry info":        {refusal(t, codes.Aborted, time.Second), nil, nothing},
		"invalid, retry info":        {refusal(t, codes.InvalidArgument, time.Second), nil, nothing},
		"not found, pushback":        {status.Error(codes.NotFound, "no"), pushback("250"), nothing},
		"too large for grpc-go":      {status.Error(codes.ResourceExhausted, "grpc: received message larger than max (10 vs. 5)"), nil, nothing},
		"too large to be sent":       {status.Error(codes.ResourceExhausted, "trying to send message larger than max (10 vs. 5)"), nil, nothing},
		"too large for grpc-java":    {status.Error(codes.ResourceExhausted, "gRPC message exceeds maximum size 5: 10"), nil, nothing},
		"too large for others":       {status.Error(codes.ResourceExhausted, "Received message larger than max (10 vs. 5)"), nil, nothing},
		"too large, but with a time": {refusal(t, codes.ResourceExhausted, time.Second), nil, stated(time.Second)},
	} {
		require.Equal(t, c.want, grpcpace.Default(status.Convert(c.err), c.trailer), name)
	}
}

// What is too large by the client's own measure never left, and is about no limit.
func TestTooLargeHoldsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		srv := &server{}
		conn := dial(t, srv, "a", through(grpcpace.New(every(t, T)))...)
		require.Equal(t, codes.ResourceExhausted, status.Code(send(t.Context(), conn, grpc.MaxCallSendMsgSize(1))))
		require.NoError(t, send(t.Context(), conn))
		require.Equal(t, T, time.Since(srv.started))
	})
}

func TestClassifier(t *testing.T) {
	busy := func(s *status.Status, _ metadata.MD) feedback.Verdict {
		return feedback.Verdict{Refused: s.Code() == codes.Aborted, Stated: true, Wait: time.Minute}
	}
	for _, c := range []struct {
		classifier grpcpace.Classifier
		err        error
		second     time.Duration
	}{
		{busy, status.Error(codes.Aborted, "busy"), time.Minute},
		{busy, refusal(t, codes.ResourceExhausted, time.Hour), T},
		{nil, refusal(t, codes.ResourceExhausted, time.Hour), T},
	} {
		bubble(t, func(t *testing.T) {
			srv := (&server{}).refuseFirst(1, c.err)
			conn := dial(t, srv, "a", through(grpcpace.New(every(t, T), grpcpace.WithClassifier(c.classifier)))...)
			require.Error(t, send(t.Context(), conn))
			require.NoError(t, send(t.Context(), conn))
			require.Equal(t, []time.Duration{0, c.second}, srv.seen())
		})
	}
}

// The refusal of a Pacer is not taken by another one, chained in front of it, for the
// server's.
func TestPacersInAChain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		outer := every(t, T)
		inner := every(t, time.Hour, shaper.WithQueue(1))
		inner.Charge(2)
		srv := &server{}
		conn := dial(t, srv, "a", append(through(grpcpace.New(outer)), through(grpcpace.New(inner))...)...)
		require.Equal(t, codes.ResourceExhausted, status.Code(send(context.Background(), conn)))
		require.Equal(t, T, outer.Delay())
		require.Empty(t, srv.seen())
	})
}
