package grpcpace

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// UnaryClientInterceptor returns the interceptor for unary RPCs, for
// [grpc.WithChainUnaryInterceptor]. An RPC that may not start returns an [*Error], or, if
// its context has ended before, the status of that. Everything else is the invoker's.
func (p *Pacer) UnaryClientInterceptor() grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		// Beside the caller's options: an RPC can have its metadata read by several.
		var header, trailer metadata.MD
		opts = append(opts[:len(opts):len(opts)], grpc.Header(&header), grpc.Trailer(&trailer))
		pass, err := p.admit(ctx, method, req, cc)
		if err != nil {
			return err
		}
		defer p.engine.Free(&pass.Call) // also if what is below panics
		defer p.engine.Ended(&pass.Call)
		invoke := func() error {
			header, trailer = nil, nil
			err := invoker(p.watched(ctx, pass), method, req, reply, cc, opts...)
			p.listen(pass, err, header, trailer)
			p.engine.Ended(&pass.Call)
			return err
		}
		err = invoke()
		if err != nil && p.retry != nil {
			err = p.retryWhile(ctx, pass, p.retry.codesOf(cc, method), err, invoke)
		}
		return err
	}
}
