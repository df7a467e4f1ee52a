package transport

import (
	"context"
	"net/http"

	"github.com/sluice-go/sluice/transport/internal/engine"
)

// ErrCost is the reason for refusing a request whose cost is below 1, or is not 1
// while the [Waiter] has no WaitN, or does not fit WaitN's int. A cost that the
// Waiter itself refuses keeps the Waiter's own reason. It matches, by [errors.Is], what
// bears its name in the other packages of this module.
var ErrCost = engine.ErrCost

// WithCost has f say how many units a request costs, for partners that count
// message parts or points instead of requests. Without it, or with a nil f, a
// request costs 1. [ContextWithCost] overrides it for a single call.
//
// f is called once per RoundTrip on the caller's goroutine and must be safe for
// concurrent use. It must neither change the request nor read its body, which can
// be read only once and belongs to the base; the URL, the header, ContentLength and
// the context are there to decide from. A cost below 1 refuses the request with
// [ErrCost].
func WithCost(f func(*http.Request) int64) Option {
	return func(c *config) { c.cost = f }
}

// ContextWithCost returns a context whose requests cost the given number of units,
// whatever [WithCost] says. It applies to every hop if the request is redirected,
// since all of them share the context. A cost below 1 refuses the request with
// [ErrCost].
func ContextWithCost(ctx context.Context, cost int64) context.Context {
	return perCall{cost: &cost}.in(ctx)
}
