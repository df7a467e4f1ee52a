package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/scheduler/redis/internal/redisserver"
)

// A world is two servers, of which one is in charge.
type world struct {
	servers [2]*redisserver.Server
	admins  [2]*goredis.Client
	current atomic.Int64
	trace   *log.Logger
}

func newWorld(trace *log.Logger) (*world, error) {
	w := &world{trace: trace}
	for i := range w.servers {
		s, err := redisserver.Start()
		if err != nil {
			return nil, errors.Join(err, w.close())
		}
		w.servers[i] = s
		w.admins[i] = goredis.NewClient(&goredis.Options{Addr: s.Addr})
	}
	return w, nil
}

func (w *world) close() (err error) {
	for i, s := range w.servers {
		if s != nil {
			err = errors.Join(err, w.admins[i].Close(), s.Close())
		}
	}
	return err
}

// dial connects with the server that is in charge.
func (w *world) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, w.servers[w.current.Load()].Addr)
}

// happen lets something happen, and returns when it is over.
func (w *world) happen(rng *rand.Rand) error {
	ctx := context.Background()
	now := w.current.Load()
	s, admin := w.servers[now], w.admins[now]
	span := time.Duration(rng.Int64N(int64(3 * time.Second)))
	if rng.IntN(2) == 0 {
		span /= 20 // about as long as a timeout
	}
	switch rng.IntN(7) {
	case 0, 1:
		w.trace.Printf("stopped for %v", span)
		if err := s.Stop(); err != nil {
			return err
		}
		time.Sleep(span)
		return s.Continue()
	case 2:
		w.trace.Printf("killed for %v", span)
		_ = s.Kill() // the error tells how it ended
		time.Sleep(span)
		return s.Run()
	case 3:
		w.trace.Print("flushed")
		return admin.FlushAll(ctx).Err()
	case 4:
		w.trace.Print("scripts flushed")
		return admin.ScriptFlush(ctx).Err()
	case 5:
		w.trace.Print("connections cut")
		return w.cut(ctx, admin)
	default:
		w.trace.Print("failover")
		return w.failover(ctx, rng, 1-now)
	}
}

func (w *world) cut(ctx context.Context, admin *goredis.Client) error {
	return admin.ClientKillByFilter(ctx, "TYPE", "normal", "SKIPME", "yes").Err()
}

// failover puts a replica in charge, which at first takes no writes.
func (w *world) failover(ctx context.Context, rng *rand.Rand, to int64) error {
	old, admin := w.admins[1-to], w.admins[to]
	host, port, err := net.SplitHostPort(w.servers[1-to].Addr)
	if err != nil {
		return err
	}
	if err := admin.Do(ctx, "REPLICAOF", host, port).Err(); err != nil {
		return fmt.Errorf("replica: %w", err)
	}
	time.Sleep(time.Second)
	w.current.Store(to)
	if err := w.cut(ctx, old); err != nil {
		return fmt.Errorf("cut: %w", err)
	}
	time.Sleep(time.Duration(rng.Int64N(int64(time.Second))))
	if err := admin.Do(ctx, "REPLICAOF", "NO", "ONE").Err(); err != nil {
		return fmt.Errorf("promotion: %w", err)
	}
	return old.FlushAll(ctx).Err()
}
