package redis_test

import (
	"bufio"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/redis"
)

// A proxy stands before a server and loses replies of scripts: the server has done what
// it was asked, and the client does not hear of it.
type proxy struct {
	addr   string
	lose   func(n int64) bool // the n-th script, from 1 on
	silent bool               // the connection stays open
	n      atomic.Int64
	lost   atomic.Int64
}

func newProxy(t *testing.T, server string, lose func(int64) bool) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{addr: l.Addr().String(), lose: lose}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			s, err := net.Dial("tcp", server)
			if err != nil {
				c.Close()
				continue
			}
			t.Cleanup(func() { s.Close() })
			go p.serve(c, s)
		}
	})
	return p
}

func (p *proxy) serve(c, s net.Conn) {
	defer c.Close()
	defer s.Close()
	var losing atomic.Bool
	go func() {
		defer c.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := s.Read(buf)
			if err != nil {
				return
			}
			if losing.Load() {
				p.lost.Add(1)
				if p.silent {
					continue
				}
				return
			}
			if _, err := c.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	lines := bufio.NewReader(c)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		if command := strings.ToLower(strings.TrimSpace(line)); command == "evalsha" || command == "eval" {
			losing.Store(p.lose(p.n.Add(1)))
		}
		if _, err := io.WriteString(s, line); err != nil {
			return
		}
	}
}

// The client sends again what had no answer. It is told what it was told before: nothing
// is charged twice, and no slot is used twice.
func TestLostReplies(t *testing.T) {
	srv := realServer(t)
	const units = 60
	p := newProxy(t, srv.Addr, func(n int64) bool { return n%2 == 0 || n%5 == 0 })
	c := client(t, p.addr)
	// The first one is unknown to the server, which is no loss.
	sched := newSchedule(t, c, "lost", scheduler.PerHour(1), 1, redis.WithTimeout(patience))
	for i := range units {
		granted, wait, err := sched.Step(t.Context(), 1)
		require.NoError(t, err)
		require.EqualValues(t, 1, granted)
		assert.InDelta(t, float64(i)*3600, wait.Seconds(), 60, "unit %d", i)
	}
	assert.Greater(t, p.lost.Load(), int64(units/2))
	direct := newSchedule(t, client(t, srv.Addr), "lost", scheduler.PerHour(1), 1)
	_, wait, err := direct.Step(t.Context(), 1)
	require.NoError(t, err)
	assert.InDelta(t, units*3600, wait.Seconds(), 60, "each was charged once")
}

// If no answer comes at all, what was reserved is lost, and never used.
func TestLostForGood(t *testing.T) {
	srv := realServer(t)
	p := newProxy(t, srv.Addr, func(n int64) bool { return n > 2 && n%3 == 0 })
	p.silent = true
	r := scheduler.PerSecond(100)
	sched, err := redis.New(client(t, p.addr), "silent", r, 1, redis.FailClosed())
	require.NoError(t, err)
	var left atomic.Int64
	s, watched := watchedLine(t, sched, 0)
	until := time.Now().Add(2 * time.Second)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			for time.Now().Before(until) {
				if s.Wait(t.Context()) != nil {
					time.Sleep(5 * ms)
					continue
				}
				left.Add(1)
			}
		})
	}
	all.Wait()
	assertShared(t, watched.Take(), r, 1)
	st := sched.Stats()
	t.Logf("%d left, %+v, %d replies lost", left.Load(), st, p.lost.Load())
	assert.Equal(t, left.Load(), st.Used)
	assert.NotZero(t, st.Failed)
	assert.NotZero(t, left.Load())
}

// newDelay returns the address of a proxy that passes all on later, each way.
func newDelay(t *testing.T, server string, by time.Duration) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	pass := func(to, from net.Conn) {
		defer to.Close()
		type piece struct {
			at   time.Time
			data []byte
		}
		pieces := make(chan piece, 1000)
		go func() {
			defer close(pieces)
			for {
				buf := make([]byte, 64<<10)
				n, err := from.Read(buf)
				if err != nil {
					return
				}
				pieces <- piece{time.Now().Add(by), buf[:n]}
			}
		}()
		for p := range pieces {
			time.Sleep(time.Until(p.at))
			if _, err := to.Write(p.data); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			time.Sleep(2 * by) // to connect is a round trip as well
			s, err := net.Dial("tcp", server)
			if err != nil {
				c.Close()
				continue
			}
			go pass(c, s)
			go pass(s, c)
		}
	}()
	return l.Addr().String()
}
