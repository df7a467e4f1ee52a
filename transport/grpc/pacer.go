package grpcpace

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/transport"
	"github.com/sluice-go/sluice/transport/internal/engine"
)

// A Pacer has the RPCs of one or more connections take their turn, and holds the line
// when a server refuses one. Start with [New], or with [NewKeyed] for a pace of its own
// for each server; the zero Pacer has no Waiter and cannot be used.
//
// It starts no goroutine and needs no Close. It is safe for concurrent use if its Waiter is.
type Pacer struct {
	key    KeyFunc
	keyed  bool
	engine engine.Engine
	config
}

// New returns a Pacer whose RPCs leave when w says so. They share the one pace, on
// whatever connection, and what one server refuses holds them all.
//
// What a [transport.Waiter] may say is heard, but for [transport.Predictor] without [WithRetry].
// New panics if w is nil, as a Pacer without a Waiter is a mistake in the program, or cannot do
// what an option needs.
func New(w transport.Waiter, opts ...Option) *Pacer {
	if w == nil {
		panic("grpcpace: New called with a nil Waiter")
	}
	return newPacer(TargetKey, false, engine.Of(w), opts)
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
	return newPacer(key, true, engine.OfKeyed(g), opts)
}

func newPacer(key KeyFunc, keyed bool, w engine.Waiter, opts []Option) *Pacer {
	p := &Pacer{key: key, keyed: keyed, config: config{maxHold: defaultMaxHold, classify: Default}}
	for _, opt := range opts {
		opt(&p.config)
	}
	p.config.fit(&w)
	p.engine.Waiter, p.engine.MaxHold, p.engine.Floor = w, p.maxHold, p.floor
	if p.retry != nil {
		p.engine.Budget.Share = p.retry.Budget
	}
	return p
}

// DialOptions returns what [grpc.NewClient] needs to have the RPCs of a connection paced:
// both interceptors, chained behind those of earlier options, and the stats handler. With
// [WithRetry] the retries of gRPC itself are switched off ([grpc.WithDisableRetry]).
func (p *Pacer) DialOptions() []grpc.DialOption {
	opts := []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(p.UnaryClientInterceptor()),
		grpc.WithChainStreamInterceptor(p.StreamClientInterceptor()),
		grpc.WithStatsHandler(p.StatsHandler()),
	}
	if p.retry != nil {
		opts = append(opts, grpc.WithDisableRetry())
	}
	return opts
}

// A passage is an RPC on its way.
type passage struct {
	engine.Call
	name string // for errors
	sent bool   // its start has left
}

// admit returns once an RPC may start. Otherwise it tells why not.
func (p *Pacer) admit(ctx context.Context, method string, req any, cc *grpc.ClientConn) (*passage, error) {
	// Asked before the Waiter is: a caller that gave up has nothing to learn about the
	// pace, and gets what gRPC gives.
	if err := ctx.Err(); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	pass := &passage{name: p.key(ctx, method, cc)}
	pass.Cost, pass.Later = p.costOf(ctx, method, req), engine.SettlingOf(ctx)
	pass.Settles = pass.Later != nil && p.engine.Depart != nil
	if p.keyed {
		pass.Key = pass.name
	}
	err := p.wait(ctx, pass, pass.Cost, func() error {
		if p.engine.LeaveNow(&pass.Call) {
			return nil
		}
		return p.engine.Wait(ctx, &pass.Call)
	})
	if err != nil {
		p.engine.Forget(time.Now())
		return nil, err
	}
	pass.sent = true
	return pass, nil
}

// wait waits in the line for units of the RPC's key.
func (p *Pacer) wait(ctx context.Context, pass *passage, cost int64, line func() error) error {
	arrived := time.Now()
	err := p.engine.Payable(cost)
	if err == nil {
		err = line()
	}
	if err != nil {
		return p.newError(ctx, err, pass, time.Since(arrived))
	}
	return nil
}
