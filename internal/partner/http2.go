package partner

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// StartHTTP2 serves HTTP/2 without TLS on a free port of 127.0.0.1 and returns its
// URL, which has no slash at the end. The error is that of net.Listen. A client needs
// an http.Transport whose Protocols have UnencryptedHTTP2 and not HTTP1.
//
// It exists because net/http's own server sends neither a GOAWAY that disowns a
// request nor REFUSED_STREAM. It is no more than that takes: it does not read what a
// request asks for, so it has no endpoints and no limits, and answers 200 without a
// body to whatever [Partner.Break] does not make fail. What arrives counts in
// [Stats].Wire.
//
// stop closes all connections, whatever is in hand, and when it returns, nothing of
// the server is left. It may be called more than once and at the same time.
func (p *Partner) StartHTTP2() (url string, stop func(), err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("partner: %w", err)
	}
	s := &http2Server{wire: p.wire, open: make(map[net.Conn]struct{})}
	s.running.Go(func() { s.accept(ln) })
	stop = func() {
		ln.Close()
		s.close()
		s.running.Wait()
	}
	return "http://" + ln.Addr().String(), stop, nil
}

// An http2Server has a goroutine that accepts and one for each connection.
type http2Server struct {
	wire    *wire
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool
	open   map[net.Conn]struct{}
}

func (s *http2Server) accept(ln net.Listener) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return // stop closed it
		}
		if !s.add(conn) {
			conn.Close()
			return
		}
		s.wire.connect()
		s.running.Go(func() {
			defer s.remove(conn)
			serveHTTP2(conn, s.wire)
		})
	}
}

func (s *http2Server) add(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.open[conn] = struct{}{}
	return true
}

func (s *http2Server) remove(conn net.Conn) {
	conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, conn)
}

func (s *http2Server) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for conn := range s.open {
		conn.Close()
	}
}

// maxStreams is how many requests a client may have open on a connection.
const maxStreams = 250

// An http2Conn is the server's side of a connection. One goroutine reads and writes,
// so the frames of an answer come in the order of what it answers.
type http2Conn struct {
	conn    net.Conn
	wire    *wire
	out     []byte // frames to be sent
	highest uint32 // stream that was opened last

	live map[uint32]struct{} // streams that want an answer once their request ends
	gone bool                // GOAWAY was sent: whatever comes now is disowned
}

// serveHTTP2 returns when the connection has ended or is to be closed.
func serveHTTP2(conn net.Conn, w *wire) {
	c := &http2Conn{conn: conn, wire: w, live: make(map[uint32]struct{})}
	in := bufio.NewReader(conn)
	_ = conn.SetReadDeadline(time.Now().Add(readTimeout))
	var first [len(preface)]byte
	if _, err := io.ReadFull(in, first[:]); err != nil || string(first[:]) != preface {
		return
	}
	c.send(frameSettings, 0, 0, []byte{0, settingMaxConcurrentStreams, 0, 0, 0, maxStreams})
	buf := make([]byte, maxFrame)
	for c.flush() {
		_ = conn.SetReadDeadline(time.Now().Add(idleTimeout))
		f, err := readFrame(in, buf)
		if err != nil || !c.handle(f) {
			return
		}
	}
}

func (c *http2Conn) send(kind, flags byte, stream uint32, payload []byte) {
	c.out = appendFrame(c.out, frame{kind, flags, stream, payload})
}

// flush reports whether everything was written.
func (c *http2Conn) flush() bool {
	if len(c.out) == 0 {
		return true
	}
	_ = c.conn.SetWriteDeadline(time.Now().Add(readTimeout))
	_, err := c.conn.Write(c.out)
	c.out = c.out[:0]
	return err == nil
}

// handle reports whether the connection goes on.
func (c *http2Conn) handle(f frame) bool {
	switch f.kind {
	case frameSettings:
		if f.flags&flagAck == 0 {
			c.send(frameSettings, flagAck, 0, nil)
		}
	case framePing:
		if f.flags&flagAck == 0 {
			c.send(framePing, flagAck, 0, f.payload)
		}
	case frameHeaders:
		// A block that needs a second frame is longer than this server reads.
		if f.flags&flagEndHeaders == 0 || f.stream%2 == 0 {
			return false
		}
		if f.stream > c.highest && !c.begin(f.stream) {
			return false
		}
		c.end(f) // else it holds the trailers of a request
	case frameData:
		// Only the connection's window is filled again: 64 KiB of a body are enough.
		if n := len(f.payload); n > 0 {
			c.send(frameWindowUpdate, 0, 0, numbers(uint32(n)))
		}
		c.end(f)
	case frameRSTStream:
		delete(c.live, f.stream) // the client has given up
	}
	return true
}

// begin takes a new request. It reports whether the connection goes on.
func (c *http2Conn) begin(stream uint32) bool {
	c.highest = stream
	if c.gone {
		c.wire.arrive()
		c.wire.take(GoAway, 1)
		return true
	}
	if len(c.live) >= maxStreams {
		return false // the client was told not to
	}
	switch c.wire.arrive(GoAway, RefuseStream, HangUp) {
	case GoAway:
		// As if nothing was processed of all that has no answer yet.
		last := stream
		for s := range c.live {
			last = min(last, s)
		}
		// Streams of a client have odd numbers.
		c.send(frameGoAway, 0, 0, numbers(max(last, 2)-2, codeNoError))
		c.wire.take(GoAway, len(c.live))
		clear(c.live)
		c.gone = true
	case RefuseStream:
		c.send(frameRSTStream, 0, stream, numbers(codeRefusedStream))
	case HangUp:
		c.wire.take(HangUp, len(c.live))
		return false
	default:
		c.live[stream] = struct{}{}
	}
	return true
}

// end answers a request if f is its last frame and nothing else became of it.
func (c *http2Conn) end(f frame) {
	if _, ok := c.live[f.stream]; !ok || f.flags&flagEndStream == 0 {
		return
	}
	delete(c.live, f.stream)
	c.send(frameHeaders, flagEndHeaders|flagEndStream, f.stream, []byte{status200})
}
