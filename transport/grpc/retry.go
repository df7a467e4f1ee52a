package grpcpace

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Retry is a policy for sending unary RPCs again. Whether that is safe only the service knows:
// so what is sent again is what ends with one of the Codes, and nothing else. Streams are not,
// nor is what a server asks not to send again (a negative grpc-retry-pushback-ms), nor what is
// held for longer than [WithMaxHold].
//
// Each attempt takes its own turn, behind the hold that the refusal has set, where the retries
// that gRPC makes by itself come back while the key is held: so [Pacer.DialOptions] switch those
// off. If an attempt could not leave in time, the caller gets the status that there is at once.
// What gRPC knows that no server has seen it still sends again by itself.
type Retry struct {
	// Attempts is how often an RPC is sent, in all. 0 means 3.
	Attempts int
	// Budget bounds retries to a share of first attempts, beside the ten that each key has to
	// begin with and saves at most; see [transport.Retry]. 0 means 0.1.
	Budget float64
	// Codes are those of what may be sent again. None means the retryableStatusCodes that the
	// retryPolicy of the service config has for the method; without one nothing is.
	Codes []codes.Code
}

// WithRetry has unary RPCs that are safe to send again sent again. Without it nothing is.
func WithRetry(r Retry) Option {
	if r.Attempts == 0 {
		r.Attempts = 3
	}
	if r.Budget == 0 {
		r.Budget = 0.1
	}
	return func(c *config) {
		must(r.Attempts > 1, "retry with %d attempts: must be at least 2", r.Attempts)
		must(r.Budget > 0 && r.Budget <= 1, "retry with a budget of %v: must be above 0 and at most 1", r.Budget)
		c.retry = &r
	}
}

// codesOf returns what tells of a code whether it may be sent again.
func (r *Retry) codesOf(cc *grpc.ClientConn, method string) func(codes.Code) bool {
	if len(r.Codes) > 0 {
		return func(c codes.Code) bool { return slices.Contains(r.Codes, c) }
	}
	if cc == nil {
		return func(codes.Code) bool { return false }
	}
	policy := cc.GetMethodConfig(method).RetryPolicy
	return func(c codes.Code) bool { return policy != nil && policy.RetryableStatusCodes[c] }
}

// retryWhile sends an RPC again until its status is none to send again for, or it must not be
// sent any more. It returns the last one.
func (p *Pacer) retryWhile(ctx context.Context, pass *passage, again func(codes.Code) bool, err error, invoke func() error) error {
	p.engine.Budget.Deposit(pass.Key)
	for sent := 1; sent < p.retry.Attempts && err != nil && ctx.Err() == nil && !isLocal(err) && again(status.Code(err)); sent++ {
		if pass.Verdict.Capped || pass.Verdict.Final || !p.engine.Budget.Withdraw(pass.Key) {
			break
		}
		until := p.engine.Again(&pass.Call, pass.Verdict.Refused, sent)
		late := p.engine.OutOfTime(ctx, &pass.Call, until, 0)
		p.engine.Free(&pass.Call) // nothing of it is in flight while it waits
		if late || p.engine.WaitUntil(ctx, &pass.Call, until) != nil {
			p.engine.Budget.Refund(pass.Key)
			break
		}
		err = invoke()
	}
	return err
}
