package grpcpace

import "context"

// WithCost has f say how many units an RPC costs. Without it, or with a nil f, an RPC
// costs 1. req is the request of a unary RPC and nil for the start of a stream; with
// [WithPacedMessages] it is each message that is sent after the first.
//
// f is called on the caller's goroutine and must be safe for concurrent use. It must not
// change req. A cost below 1 refuses the RPC with [transport.ErrCost]. It needs a
// [transport.CostWaiter].
func WithCost(f func(ctx context.Context, method string, req any) int64) Option {
	return func(c *config) { c.cost = f }
}

func (p *Pacer) costOf(ctx context.Context, method string, req any) int64 {
	if p.cost == nil {
		return 1
	}
	return p.cost(ctx, method, req)
}
