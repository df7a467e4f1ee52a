package redis_test

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/redis"
	"github.com/sluice-go/sluice/shaper"
)

// A scripted is a store in a bubble that runs the script itself, on a server without a
// socket whose clock is that of the bubble.
type scripted struct {
	trip   time.Duration // there and back
	server *miniredis.Miniredis
	client *goredis.Client

	mu    sync.Mutex
	hangs bool
	fails error
	steps int
}

func newScripted(t *testing.T, trip time.Duration) *scripted {
	t.Helper()
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true)
	client := goredis.NewClient(&goredis.Options{
		Addr: "127.0.0.1:1", // is not dialled, and not looked up as a name would be
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			conn, err := server.Dial()
			return buffer(conn), err
		},
	})
	t.Cleanup(func() {
		require.NoError(t, client.Close())
		server.Close()
	})
	return &scripted{trip: trip, server: server, client: client}
}

// set has the store hang, fail or answer, from now on.
func (s *scripted) set(hangs bool, fails error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangs, s.fails = hangs, fails
}

// path returns a way to it.
func (s *scripted) path() *redis.Path {
	return &redis.Path{
		Before: func(ctx context.Context) error {
			s.mu.Lock()
			hangs, fails := s.hangs, s.fails
			s.steps++
			s.mu.Unlock()
			time.Sleep(s.trip / 2)
			if hangs {
				<-ctx.Done()
				return ctx.Err()
			}
			return fails
		},
		After: func() error {
			time.Sleep(s.trip - s.trip/2)
			return nil
		},
	}
}

func (s *scripted) stepsTaken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.steps
}

// A member is one of several processes that share a limit in a bubble, each with a clock
// of its own.
type member struct {
	line     *shaper.Shaper
	schedule *redis.Schedule
	diary    *diary
}

func (s *scripted) join(t *testing.T, r scheduler.Rate, burst int64, p redis.Policy, skew time.Duration, opts ...redis.Option) member {
	t.Helper()
	sched, err := s.on("shared", r, burst, p, append(opts, redis.WithSkew(skew))...)
	require.NoError(t, err)
	line, err := redis.NewShaper(sched, shaper.WithClock(skewed(skew)), shaper.WithQueue(100_000))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, line.Close())
		time.Sleep(time.Second) // what is handed back is on its way
	})
	return member{line, sched, newDiary()}
}

// call has callers that each wait again once they have left, until ctx ends.
func (m member) call(ctx context.Context, callers int) {
	for range callers {
		go func() {
			for m.line.Wait(ctx) == nil {
				m.diary.note()
			}
		}()
	}
}

// joinFour has four processes, whose clocks are wrong by up to 5 s, share a limit, with so
// many callers each, until the test ends.
func (s *scripted) joinFour(t *testing.T, r scheduler.Rate, callers int) []member {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all []member
	for _, skew := range []time.Duration{5 * time.Second, -5 * time.Second, 0, 3 * time.Second} {
		m := s.join(t, r, 1, redis.FailLocal(4), skew)
		m.call(ctx, callers)
		all = append(all, m)
	}
	t.Cleanup(cancel)
	return all
}

func (s *scripted) failing(err error) *scripted {
	s.set(false, err)
	return s
}

func (s *scripted) hanging() *scripted {
	s.set(true, nil)
	return s
}

func (s *scripted) on(name string, r scheduler.Rate, burst int64, p redis.Policy, opts ...redis.Option) (*redis.Schedule, error) {
	sched, err := s.path().On(s.client, name, r, burst, p, opts...)
	if err == nil {
		sched.Meet()
	}
	return sched, err
}

// A buffered is the end of a pipe that takes what is written at once, as a socket does: a client
// that writes several requests before it reads would wait for ever for a server that replies to
// the first one.
type buffered struct {
	net.Conn
	mu     sync.Mutex
	closed bool
	out    chan []byte
}

func buffer(c net.Conn) net.Conn {
	b := &buffered{Conn: c, out: make(chan []byte, 1000)}
	go func() {
		for p := range b.out {
			c.Write(p)
		}
	}()
	return b
}

func (b *buffered) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, net.ErrClosed
	}
	b.out <- bytes.Clone(p)
	return len(p), nil
}

func (b *buffered) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.closed = true
		close(b.out)
	}
	return b.Conn.Close()
}
