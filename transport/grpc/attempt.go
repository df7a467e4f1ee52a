package grpcpace

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// StatsHandler returns a handler for [grpc.WithStatsHandler] that counts the attempts of
// each RPC on the wire. gRPC makes more than one by itself, below all interceptors; a
// server counts each. The ones after the first are charged to the RPC's key if the Waiter has
// a method Charge. RPCs that have not passed an interceptor of the same Pacer are left
// alone.
func (p *Pacer) StatsHandler() stats.Handler { return attempts{p} }

type attempts struct{ pacer *Pacer }

// counted is an RPC whose attempts are counted.
type counted struct {
	pass *passage
	sent atomic.Int64
}

// countedKey has the Pacer in it: an RPC may pass through several.
type countedKey struct{ pacer *Pacer }

// watched returns a context for one attempt of the RPC, by which the handler knows it.
func (p *Pacer) watched(ctx context.Context, pass *passage) context.Context {
	if p.engine.Charge == nil {
		return ctx
	}
	return context.WithValue(ctx, countedKey{p}, &counted{pass: pass})
}

// HandleRPC is told, among other things, when the header of an attempt is written.
func (a attempts) HandleRPC(ctx context.Context, s stats.RPCStats) {
	header, ok := s.(*stats.OutHeader)
	if !ok || !header.Client {
		return
	}
	p := a.pacer
	c, _ := ctx.Value(countedKey{p}).(*counted)
	if c == nil || c.sent.Add(1) == 1 {
		return
	}
	p.engine.Charge(c.pass.Key, int(c.pass.Cost))
}

func (attempts) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (attempts) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (attempts) HandleConn(context.Context, stats.ConnStats)                       {}
