package grpcpace

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/transport"
)

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

// payable returns why the Waiter cannot take a cost.
func (p *Pacer) payable(cost int64) error {
	switch {
	case cost == 1: // at every Waiter
		return nil
	case cost < 1:
		// Not left to the Waiter: x/time's Limiter takes a negative cost as capacity
		// handed back.
		return fmt.Errorf("%w: %d is below 1", transport.ErrCost, cost)
	case p.waiter.waitN == nil:
		return fmt.Errorf("%w: %d asked of a Waiter without WaitN", transport.ErrCost, cost)
	case int64(int(cost)) != cost:
		return fmt.Errorf("%w: %d does not fit an int", transport.ErrCost, cost)
	}
	return nil
}
