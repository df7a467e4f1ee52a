package redis

import (
	"context"
	"errors"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// A batch gathers scripts that are to be run while others are under way: those of many keys go
// in one pipeline. What comes alone goes at once.
type batch struct {
	client goredis.UniversalClient

	mu sync.Mutex
	// Guarded by mu:
	waiting []*evaluation
	flying  int
}

const (
	// mostFlying bounds how many pipelines are under way, and so what a server that hangs ties up.
	mostFlying = 4
	// mostInBatch bounds how many scripts are in one.
	mostInBatch = 256
)

// An evaluation is a script that is to be run.
type evaluation struct {
	ctx    context.Context
	script *goredis.Script
	keys   []string
	args   []any
	done   chan struct{} // closed once it has ended
	got    []any
	err    error
}

// run runs a script and returns what it replied, or the error of ctx if that ends before.
func (b *batch) run(ctx context.Context, script *goredis.Script, key string, args []any) ([]any, error) {
	e := &evaluation{ctx: ctx, script: script, keys: []string{key}, args: args, done: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, e)
	if b.flying < mostFlying {
		b.flying++
		go b.fly()
	}
	b.mu.Unlock()
	select {
	case <-e.done:
		return e.got, e.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (b *batch) fly() {
	for {
		b.mu.Lock()
		n := min(len(b.waiting), mostInBatch)
		all := b.waiting[:n:n]
		b.waiting = b.waiting[n:]
		if n == 0 {
			b.waiting = nil
			b.flying--
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
		b.send(all)
	}
}

// send runs scripts by their digests, and by their texts where the server does not know them: one
// that does not has not run them, so all are charged once.
func (b *batch) send(all []*evaluation) {
	var alive []*evaluation
	var until time.Time
	for _, e := range all {
		if e.ctx.Err() != nil {
			continue // its sender has given up
		}
		alive = append(alive, e)
		if deadline, ok := e.ctx.Deadline(); ok && deadline.After(until) {
			until = deadline
		}
	}
	ctx := context.Background()
	if !until.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, until)
		defer cancel()
	}
	var unknown []*evaluation
	b.pipe(ctx, alive, func(p goredis.Scripter, e *evaluation) *goredis.Cmd {
		return e.script.EvalSha(ctx, p, e.keys, e.args...)
	})
	for _, e := range alive {
		if goredis.HasErrorPrefix(e.err, "NOSCRIPT") {
			unknown = append(unknown, e)
			continue
		}
		close(e.done)
	}
	b.pipe(ctx, unknown, func(p goredis.Scripter, e *evaluation) *goredis.Cmd {
		return e.script.Eval(ctx, p, e.keys, e.args...)
	})
	for _, e := range unknown {
		close(e.done)
	}
}

func (b *batch) pipe(ctx context.Context, all []*evaluation, run func(goredis.Scripter, *evaluation) *goredis.Cmd) {
	if len(all) == 0 {
		return
	}
	if len(all) == 1 {
		all[0].got, all[0].err = run(b.client, all[0]).Slice()
		return
	}
	p := b.client.Pipeline()
	cmds := make([]*goredis.Cmd, len(all))
	for i, e := range all {
		cmds[i] = run(p, e)
	}
	_, err := p.Exec(ctx)
	for i, e := range all {
		e.got, e.err = cmds[i].Slice()
		if e.err == nil && e.got == nil {
			e.err = errors.Join(err, errTimeout)
		}
	}
}
