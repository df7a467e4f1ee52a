package grpcpace

import (
	"context"
	"io"

	"google.golang.org/grpc"
)

// StreamClientInterceptor returns the interceptor for streams, for
// [grpc.WithChainStreamInterceptor]. A stream that may not start returns an [*Error], or,
// if its context has ended before, the status of that. How the server answers is heard
// when the caller receives it, by RecvMsg.
func (p *Pacer) StreamClientInterceptor() grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		ctx, pass, err := p.admit(ctx, method, nil, cc)
		if err != nil {
			return nil, err
		}
		s, err := streamer(ctx, desc, cc, method, opts...)
		if err != nil {
			p.listen(pass, err, nil)
			return nil, err
		}
		paced := &stream{ClientStream: s, pacer: p, pass: pass}
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
}

func (s *stream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	switch {
	case err == nil || err == io.EOF:
		// A message shows as well as the end that the server took the stream. The end may
		// never be received, or in days.
		if !s.heard {
			s.heard = true
			s.pacer.listen(s.pass, nil, nil)
		}
	default:
		s.pacer.listen(s.pass, err, s.Trailer())
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
		if err := s.pacer.wait(ctx, s.pass, cost); err != nil {
			return err
		}
	}
	s.sent = true
	return s.ClientStream.SendMsg(m)
}
