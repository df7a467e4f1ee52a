package grpcpace

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/transport"
)

// A Pacer has the RPCs of one or more connections take their turn, and holds the line
// when a server refuses one. Start with [New], or with [NewKeyed] for a pace of its own
// for each server; the zero Pacer has no Waiter and cannot be used.
//
// It starts no goroutine, has no timer of its own and needs no Close. It is safe for
// concurrent use if its Waiter is.
type Pacer struct {
	key    KeyFunc
	keyed  bool
	waiter waiter
	memory refusals
	config
}

// New returns a Pacer whose RPCs leave when w says so. They share the one pace, on
// whatever connection, and what one server refuses holds them all.
//
// Of what a [transport.Waiter] may say, a [transport.CostWaiter], [transport.Holder] and
// [transport.Charger] are heard. New panics if w is nil, as a Pacer without a Waiter is a mistake
// in the program, or cannot do what an option needs.
func New(w transport.Waiter, opts ...Option) *Pacer {
	if w == nil {
		panic("grpcpace: New called with a nil Waiter")
	}
	return newPacer(TargetKey, false, waiterOf(w), opts)
}

// NewKeyed returns a Pacer whose RPCs leave when g says so for their key. A nil key
// function means [TargetKey]: a pace for each server. Keys get into errors, so they should
// hold no secrets.
//
// NewKeyed panics if g is nil, or cannot do what an option needs.
func NewKeyed(key KeyFunc, g transport.KeyedWaiter, opts ...Option) *Pacer {
	if g == nil {
		panic("grpcpace: NewKeyed called with a nil KeyedWaiter")
	}
	if key == nil {
		key = TargetKey
	}
	return newPacer(key, true, waiterOfKeyed(g), opts)
}

func newPacer(key KeyFunc, keyed bool, w waiter, opts []Option) *Pacer {
	c := &Pacer{key: key, keyed: keyed, waiter: w, config: config{maxHold: defaultMaxHold, classify: Default}}
	for _, opt := range opts {
		opt(&c.config)
	}
	c.config.fit(w)
	return c
}

// DialOptions returns what [grpc.NewClient] needs to have the RPCs of a connection paced:
// both interceptors, chained behind those of earlier options, and the stats handler.
func (p *Pacer) DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(p.UnaryClientInterceptor()),
		grpc.WithChainStreamInterceptor(p.StreamClientInterceptor()),
		grpc.WithStatsHandler(p.StatsHandler()),
	}
}

// A passage is an RPC on its way.
type passage struct {
	key   string // for the Waiter
	name  string // for errors
	cost  int64
	sent  bool  // its start has left; what waits is a message
	known int64 // how many refusals were known when it was sent
}

// admit returns once an RPC may start, with the context that it is to start with.
// Otherwise it tells why not.
func (p *Pacer) admit(ctx context.Context, method string, req any, cc *grpc.ClientConn) (context.Context, *passage, error) {
	// Asked before the Waiter is: a caller that gave up has nothing to learn about the
	// pace, and gets what gRPC gives.
	if err := ctx.Err(); err != nil {
		return nil, nil, status.FromContextError(err).Err()
	}
	pass := &passage{name: p.key(ctx, method, cc), cost: p.costOf(ctx, method, req)}
	if p.keyed {
		pass.key = pass.name
	}
	if err := p.wait(ctx, pass, pass.cost); err != nil {
		return nil, nil, err
	}
	pass.sent, pass.known = true, p.memory.known()
	return p.watched(ctx, pass), pass, nil
}

// wait waits for units of the RPC's key.
func (p *Pacer) wait(ctx context.Context, pass *passage, cost int64) error {
	arrived := time.Now()
	err := p.payable(cost)
	switch {
	case err != nil:
	case cost == 1:
		err = p.waiter.wait(ctx, pass.key)
	default:
		err = p.waiter.waitN(ctx, pass.key, int(cost)) // payable has made sure that it fits
	}
	if err != nil {
		return newError(err, pass, time.Since(arrived))
	}
	return nil
}
