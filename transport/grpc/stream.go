package grpcpace

import (
	"context"
	"io"
	"sync"

	"google.golang.org/grpc"
)

// StreamClientInterceptor returns the interceptor for streams, for
// [grpc.WithChainStreamInterceptor]. A stream that may not start returns an [*Error], or,
// if its context has ended before, the status of that. How the server answers is heard
// when the caller receives it, by RecvMsg.
func (p *Pacer) StreamClientInterceptor() grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		pass, err := p.admit(ctx, method, nil, cc)
		if err != nil {
			return nil, err
		}
		// gRPC may end the stream on a goroutine of its own.
		tried := sync.OnceFunc(func() { p.engine.Ended(&pass.Call) })
		ended := tried
		if p.engine.Placed(&pass.Call) {
			free := sync.OnceFunc(func() { p.engine.Release(pass.Key) })
			ended = func() { tried(); free() }
		}
		made := false
		defer func() { // an interceptor below may panic
			if !made {
				ended()
			}
		}()
		opts = append(opts[:len(opts):len(opts)], grpc.OnFinish(func(error) { ended() }))
		s, err := streamer(p.watched(ctx, pass), desc, cc, method, opts...)
		if err != nil {
			p.listen(pass, err)
			return nil, err
		}
		made = true
		paced := &stream{ClientStream: s, pacer: p, pass: pass, tried: tried, ended: ended}
		if p.messages {
			return &messages{stream: paced, method: method}, nil
		}
		return paced, nil
	}
}

// stream listens. Its fields are those of the goroutine that receives.
type stream struct {
	grpc.ClientStream
	pacer *Pacer
	pass  *passage
	heard bool
	tried func()
	ended func()
}

func (s *stream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	switch {
	case err == nil && !s.heard:
		// A message shows as well as the end that the server took the stream. The end may
		// never be received, or in days.
		s.heard = true
		header, _ := s.Header() // it has come before
		s.pacer.listen(s.pass, nil, header)
		s.tried()
	case err == nil:
	case err == io.EOF:
		s.pacer.listen(s.pass, nil, s.Trailer())
		s.ended()
	default:
		s.pacer.listen(s.pass, err, s.Trailer())
		s.ended()
	}
	return err
}

// messages also has each message take its turn. Its fields are those of the goroutine that
// sends.
type messages struct {
	*stream
	method string
	sent   bool
}

func (s *messages) SendMsg(m any) error {
	if s.sent {
		ctx := s.Context()
		cost := s.pacer.costOf(ctx, s.method, m)
		units := func() error { return s.pacer.engine.Units(ctx, s.pass.Key, cost) }
		if err := s.pacer.wait(ctx, s.pass, cost, units); err != nil {
			return err
		}
	}
	s.sent = true
	return s.ClientStream.SendMsg(m)
}
