package partner

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A raw client of the HTTP/2 server. It sends at once and reads frame by frame.
type rawClient struct {
	t    *testing.T
	conn net.Conn
}

func rawHTTP2(t *testing.T, p *Partner, hello string) *rawClient {
	url, stop, err := p.StartHTTP2()
	require.NoError(t, err)
	t.Cleanup(stop)
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = io.WriteString(conn, hello)
	require.NoError(t, err)
	return &rawClient{t, conn}
}

func (c *rawClient) send(frames ...frame) {
	var b []byte
	for _, f := range frames {
		b = appendFrame(b, f)
	}
	_, err := c.conn.Write(b)
	require.NoError(c.t, err)
}

// wants reads exactly these frames.
func (c *rawClient) wants(frames ...frame) {
	c.t.Helper()
	buf := make([]byte, maxFrame)
	for i, want := range frames {
		got, err := readFrame(c.conn, buf)
		require.NoError(c.t, err, i)
		got.payload = bytes.Clone(got.payload)
		if len(got.payload) == 0 {
			got.payload = nil
		}
		require.Equal(c.t, want, got, i)
	}
}

// ends reads to the end, which comes without a timeout.
func (c *rawClient) ends() {
	c.t.Helper()
	rest, err := io.ReadAll(c.conn)
	if err != nil {
		assert.NotErrorIs(c.t, err, io.EOF)
		timeout, ok := err.(net.Error)
		assert.False(c.t, ok && timeout.Timeout(), err)
	}
	assert.Empty(c.t, rest)
}

func request(stream uint32) frame {
	return frame{frameHeaders, flagEndHeaders | flagEndStream, stream, []byte{0x82}}
}

func open(stream uint32) frame { return frame{frameHeaders, flagEndHeaders, stream, []byte{0x82}} }

var (
	hello  = frame{frameSettings, 0, 0, []byte{0, 3, 0, 0, 0, 250}}
	synack = frame{frameSettings, flagAck, 0, nil}
)

func ok(stream uint32) frame {
	return frame{frameHeaders, flagEndHeaders | flagEndStream, stream, []byte{0x88}}
}

func newRaw(t *testing.T, breaks map[Break]int) (*Partner, *rawClient) {
	p, err := New(Config{Breaks: breaks})
	require.NoError(t, err)
	c := rawHTTP2(t, p, preface)
	c.send(frame{frameSettings, 0, 0, nil})
	c.wants(hello, synack)
	return p, c
}

// The server greets, acknowledges, keeps windows full and answers in the order in
// which requests end.
func TestFrames(t *testing.T) {
	p, c := newRaw(t, nil)
	c.send(frame{framePing, 0, 0, []byte("12345678")}, frame{framePing, flagAck, 0, []byte("12345678")},
		frame{frameSettings, flagAck, 0, nil}, frame{frameWindowUpdate, 0, 0, numbers(1)}, frame{0xbe, 0, 0, nil})
	c.wants(frame{framePing, flagAck, 0, []byte("12345678")})

	c.send(open(1), request(3), frame{frameData, 0, 1, []byte("abc")}, frame{frameData, flagEndStream, 1, nil})
	c.wants(ok(3), frame{frameWindowUpdate, 0, 0, []byte{0, 0, 0, 3}}, ok(1))

	c.send(open(5), frame{frameHeaders, flagEndHeaders | flagEndStream, 5, []byte{0x82}}) // with trailers
	c.wants(ok(5))
	c.send(open(7), frame{frameRSTStream, 0, 7, numbers(8)}, frame{frameData, flagEndStream, 7, nil}, request(9))
	c.wants(ok(9))
	assert.EqualValues(t, 5, p.Stats().Wire.Requests)
}

// GOAWAY names the last stream that was answered, so what is above it was not
// processed. No stream that it disowns is answered, nor one that comes later.
func TestGoAwayFrame(t *testing.T) {
	p, c := newRaw(t, nil)
	c.send(request(1), request(3), open(5))
	c.wants(ok(1), ok(3))
	require.NoError(t, p.Break(GoAway, 1))
	c.send(open(7), frame{frameData, flagEndStream, 5, nil}, frame{frameData, flagEndStream, 7, nil}, request(9),
		frame{framePing, 0, 0, []byte("12345678")})
	c.wants(frame{frameGoAway, 0, 0, []byte{0, 0, 0, 3, 0, 0, 0, 0}}, frame{framePing, flagAck, 0, []byte("12345678")})
	assert.EqualValues(t, 5, p.Stats().Wire.Requests)
	assert.Equal(t, map[Break]int64{GoAway: 3}, p.Stats().Wire.Broken)
}

// The first request of a connection can be disowned too: 0 is no stream.
func TestGoAwayFrameOfTheFirst(t *testing.T) {
	_, c := newRaw(t, map[Break]int{GoAway: 1})
	c.send(request(1))
	c.wants(frame{frameGoAway, 0, 0, []byte{0, 0, 0, 0, 0, 0, 0, 0}})
}

// REFUSED_STREAM concerns one stream: its body is not answered, the next is.
func TestRefusedStreamFrame(t *testing.T) {
	p, c := newRaw(t, map[Break]int{RefuseStream: 1})
	c.send(open(1), frame{frameData, flagEndStream, 1, nil}, request(3))
	c.wants(frame{frameRSTStream, 0, 1, []byte{0, 0, 0, 7}}, ok(3))
	assert.EqualValues(t, 2, p.Stats().Wire.Requests)
}

// A hang-up takes all that is unanswered with it.
func TestHangUpFrames(t *testing.T) {
	p, c := newRaw(t, nil)
	c.send(open(1), frame{framePing, 0, 0, []byte("12345678")})
	c.wants(frame{framePing, flagAck, 0, []byte("12345678")})
	require.NoError(t, p.Break(HangUp, 1))
	c.send(request(3))
	c.ends()
	assert.Equal(t, map[Break]int64{HangUp: 2}, p.Stats().Wire.Broken)
}

// What the server does not understand, or what is longer than it reads, ends the
// connection. Nothing is kept of it.
func TestFramesThatEndTheConnection(t *testing.T) {
	t.Run("HTTP/1", func(t *testing.T) {
		p, err := New(Config{})
		require.NoError(t, err)
		rawHTTP2(t, p, "GET / HTTP/1.1\r\nHost: partner.example\r\n\r\n").ends()
		assert.Zero(t, p.Stats().Wire.Requests)
	})
	for name, f := range map[string]frame{
		"too long":              {frameData, 0, 1, make([]byte, maxFrame+1)},
		"header in two frames":  {frameHeaders, flagEndStream, 1, []byte{0x82}},
		"no stream":             {frameHeaders, flagEndHeaders, 0, []byte{0x82}},
		"a stream of a server":  {frameHeaders, flagEndHeaders, 2, []byte{0x82}},
		"a frame that is short": {frameData, 0, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p, c := newRaw(t, nil)
			if name == "a frame that is short" {
				_, err := c.conn.Write([]byte{0, 0, 9, frameData, 0, 0, 0, 0, 1, 'x'})
				require.NoError(t, err)
				require.NoError(t, c.conn.(*net.TCPConn).CloseWrite())
			} else {
				c.send(f)
			}
			c.ends()
			assert.Zero(t, p.Stats().Wire.Requests)
		})
	}
	t.Run("too many streams", func(t *testing.T) {
		p, c := newRaw(t, nil)
		for stream := uint32(1); stream <= 2*maxStreams+1; stream += 2 {
			c.send(open(stream))
		}
		c.ends()
		assert.EqualValues(t, maxStreams, p.Stats().Wire.Requests)
	})
}
