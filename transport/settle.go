package transport

import (
	"context"
	"math"
	"net/http"

	"github.com/sluice-go/sluice/transport/internal/engine"
)

// ErrUnsettled is the error of a [Settle] that nothing has left for, or of which the Waiter can
// settle nothing.
var ErrUnsettled = engine.ErrUnsettled

// WithSettle has f say, from the answer, what a request has cost. The cost that was stated, by
// [WithCost] as a rule, is the upper bound that it is charged with meanwhile; from then on all
// is as if the right one had been known, but for what has left meanwhile. If it is not known, or
// below 0, or there is no answer, the request stays charged in full, and so does one that its
// caller hangs up on. What says the cost in the body or the stream can be read by the caller,
// who settles by [Settle].
//
// f is called once for each answer, before the caller gets it, and must be safe for concurrent
// use. It must neither change the answer nor read its body. It needs a Waiter that is a
// [Settler] and can settle.
func WithSettle(f func(*http.Response) (cost int64, known bool)) Option {
	return func(c *config) { c.settle = f }
}

// ContextWithSettle returns a context whose requests, and RPCs, may be settled by [Settle]: of
// several, as behind a redirect or of [WithRetry], the latest one that has left. It is for one
// call.
func ContextWithSettle(ctx context.Context) context.Context {
	ctx, s := engine.WithSettling(ctx)
	return perCall{settling: s}.in(ctx)
}

// Settle says what the request of a context of [ContextWithSettle] has cost, which may be 0, when
// it is known. Without a Settle it stays charged in full.
//
// An error has changed nothing. It is [ErrUnsettled], or what the Waiter says: of a Shaper it
// matches shaper.ErrFinal if the request was settled before, by [WithSettle] too, or can be
// settled no more. Settle is safe for concurrent use.
func Settle(ctx context.Context, actual int) error { return engine.SettlingOf(ctx).Settle(actual) }

// settleBy asks the function of WithSettle about an answer.
func (t *Transport) settleBy(p *passage, resp *http.Response) {
	if !p.Settles || t.settle == nil || resp == nil {
		return
	}
	if cost, known := t.settle(resp); known && cost >= 0 {
		p.Settle(int(min(cost, math.MaxInt)))
	}
}
