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
		ctx, pass, err := p.admit(ctx, method, req, cc)
		if err != nil {
			return err
		}
		// Beside the caller's options: an RPC can have its trailer read by several.
		var trailer metadata.MD
		opts = append(opts[:len(opts):len(opts)], grpc.Trailer(&trailer))
		err = invoker(ctx, method, req, reply, cc, opts...)
		p.listen(pass, err, trailer)
		return err
	}
}
