package grpcpace

import (
	"context"

	"google.golang.org/grpc"
)

// A KeyFunc names what an RPC's limit belongs to. It is called once per RPC on the
// caller's goroutine and must be safe for concurrent use. method is the full method, such
// as "/sms.v1.Messages/Send"; the context has the RPC's outgoing metadata.
type KeyFunc func(ctx context.Context, method string, cc *grpc.ClientConn) string

// TargetKey is the key of a server: the canonical target of the connection, such as
// "dns:///sms.example:443".
func TargetKey(_ context.Context, _ string, cc *grpc.ClientConn) string {
	if cc == nil { // an interceptor that is called by hand
		return ""
	}
	return cc.CanonicalTarget()
}

// MethodKey is the key for servers that limit each method on its own: the target and the
// full method, such as "dns:///sms.example:443/sms.v1.Messages/Send".
func MethodKey(ctx context.Context, method string, cc *grpc.ClientConn) string {
	return TargetKey(ctx, method, cc) + method
}
