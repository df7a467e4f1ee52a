package grpcpace

import (
	"context"
	"errors"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sluice-go/sluice/transport"
	"github.com/sluice-go/sluice/transport/internal/engine"
)

// Error tells why an RPC, or a message of a stream, was not sent. It is a gRPC status, so
// [status.Code] and [status.FromError] read it; errors.As finds the *transport.Error in
// it, which has the key, the time waited and when to come back. It matches, by
// [errors.Is], all that the Waiter's reason matches, and [transport.ErrNotSent] if nothing of
// the RPC has left: not for a message of a stream, whose start has.
type Error struct {
	cause *transport.Error
}

// newError describes the Waiter's refusal of an RPC, or of a message of a stream, that waited
// for it.
func (p *Pacer) newError(ctx context.Context, reason error, pass *passage, waited time.Duration) *Error {
	e := &transport.Error{Reason: reason, Key: pass.name, Sent: pass.sent, Waited: waited}
	if e.Wait = engine.WouldWait(reason); e.Wait > 0 {
		e.RetryAt = time.Now().Add(e.Wait)
	}
	// The Status is one of HTTP, of which there is none.
	e.HeldUntil, _ = p.engine.Blame(pass.Key, reason, ctx.Err() != nil || e.Timeout())
	return &Error{e}
}

// Error is the text of the *transport.Error.
func (e *Error) Error() string { return e.cause.Error() }

// Unwrap returns the *transport.Error.
func (e *Error) Unwrap() error { return e.cause }

// Timeout reports whether time was the reason: a deadline, or the Waiter's own longest
// delay.
func (e *Error) Timeout() bool { return e.cause.Timeout() }

// GRPCStatus returns the status: DeadlineExceeded if the context's deadline was the
// reason, Canceled if the context was cancelled, ResourceExhausted otherwise. If it is
// known when there will be room, its details hold a google.rpc.RetryInfo, so that code which
// handles the refusals of servers by it handles this one as well.
func (e *Error) GRPCStatus() *status.Status {
	code := codes.ResourceExhausted
	switch {
	case errors.Is(e.cause.Reason, context.Canceled):
		code = codes.Canceled
	case errors.Is(e.cause.Reason, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	}
	s := status.New(code, e.Error())
	if e.cause.Wait > 0 {
		if detailed, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(e.cause.Wait)}); err == nil {
			return detailed
		}
	}
	return s
}
