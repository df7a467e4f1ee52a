// Package grpcpace lets RPCs leave at a stated pace, and listens to servers that refuse.
//
// It is the counterpart of package transport for gRPC: the same Waiters, the same typed
// error, the same way to treat a refusal. Its name differs from the last element of its
// path, since every program that uses it imports google.golang.org/grpc too:
//
//	import grpcpace "github.com/sluice-go/sluice/transport/grpc"
//
//	pace, err := shaper.New(scheduler.PerSecond(10))
//	...
//	conn, err := grpc.NewClient(target, grpcpace.New(pace).DialOptions()...)
//
// # What takes a turn
//
// Each RPC and each stream takes a turn of the [transport.Waiter] before it starts. With
// [WithPacedMessages] so does each message that is sent on a stream after its first one,
// which goes along with the start. The wait counts against the deadline of the RPC's
// context; a Waiter that knows its line, as *shaper.Shaper does, refuses on arrival what
// cannot leave in time. Waiting for a connection, with grpc.WaitForReady, comes after the
// turn.
//
// # What is heard
//
// An answer of RESOURCE_EXHAUSTED holds the key: no RPC with that key leaves before the
// time that it states, however many wait. So do UNAVAILABLE, INTERNAL, UNKNOWN,
// DEADLINE_EXCEEDED and PERMISSION_DENIED if they state a time. The time is the
// retry_delay of a google.rpc.RetryInfo in the details of the status (see
// google/rpc/error_details.proto), or else the trailer grpc-retry-pushback-ms (gRFC A6).
// RESOURCE_EXHAUSTED without a time backs off: 1 s, doubled with each refusal of an RPC
// that was sent after the one before, up to a minute; reset by an RPC that succeeds.
// A time above [WithMaxHold] is cut to that; then a single RPC goes, and the others wait for its
// answer for a little. [WithClassifier] decides otherwise. A message that is larger than one of
// the two sides takes is RESOURCE_EXHAUSTED too, but about no limit that time could help.
//
// An RPC that succeeds, and has metadata which says that nothing remains (ratelimit-remaining: 0
// and ratelimit-reset, and what is like it; see feedback.ReadSpent), or no more than is in flight,
// holds the key as well. The
// rules are those of package transport, to the instant: the same answers have both send at the
// same times. [WithAdaptiveRate], [WithMaxInFlight] and transport.Settle work alike, too.
//
// The answer itself comes back as it is. Without [WithRetry] nothing is sent twice.
//
// # What gRPC sends again by itself
//
// Interceptors see an RPC, not its attempts. Below them gRPC sends again what a server
// has certainly not processed (a transparent retry, after REFUSED_STREAM or GOAWAY), and
// whatever a retryPolicy or hedgingPolicy of the service config says. These attempts
// cannot wait any more, but the [stats.Handler] that [Pacer.DialOptions] installs has
// them charged: what is behind them waits longer. That needs a Waiter that is a
// [transport.Charger].
//
// A retryPolicy for RESOURCE_EXHAUSTED makes gRPC come back while the key is held, and
// hides all refusals of an RPC but the last one. [WithRetry] sends unary RPCs again for what the
// policy allows, each attempt in its turn, and switches the retries of gRPC off. Without it leave
// that code out of the policy, or use grpc.WithDisableRetry; transparent retries stay.
//
// # When an RPC is not sent
//
// It returns an [*Error], which matches [transport.ErrNotSent], holds a
// *transport.Error, and is a gRPC status: RESOURCE_EXHAUSTED if there is no room,
// DEADLINE_EXCEEDED if the deadline cannot be met, CANCELLED if the context was cancelled
// in the line. An RPC whose context has ended before it gets the status that gRPC gives
// it, without a word about the pace.
package grpcpace
