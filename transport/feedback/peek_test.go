package feedback_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/transport/feedback"
)

// scripted is a body that returns what its script says, read by read, io.EOF after
// that, and errClosed once it is closed.
type scripted struct {
	script []step
	reads  int
	closed int
}

type step struct {
	data []byte
	err  error
}

var errClosed = errors.New("read after close")

func (s *scripted) Read(p []byte) (int, error) {
	s.reads++
	if s.closed > 0 {
		return 0, errClosed
	}
	if len(s.script) == 0 {
		return 0, io.EOF
	}
	next := &s.script[0]
	n := copy(p, next.data)
	next.data = next.data[n:]
	if len(next.data) > 0 {
		return n, nil
	}
	err := next.err
	s.script = s.script[1:]
	return n, err
}

func (s *scripted) Close() error { s.closed++; return errors.Join(errClosed) }

func peek(body io.ReadCloser) (*http.Response, *feedback.Answer) {
	resp := respond(http.StatusTooManyRequests, "")
	resp.Body = body
	return resp, answer(resp)
}

func TestBodyIsReadLazilyAndOnce(t *testing.T) {
	body := &scripted{script: []step{{[]byte("hello "), nil}, {[]byte("world"), nil}}}
	resp, a := peek(body)
	assert.Zero(t, body.reads)
	assert.Equal(t, "hello world", string(a.Body()))
	reads := body.reads
	assert.Equal(t, "hello world", string(a.Body()))
	assert.Equal(t, reads, body.reads)

	rest, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Equal(t, "hello world", string(rest))
	assert.Equal(t, "hello world", string(a.Body()), "still there")
}

// A time that the headers state is trusted more than any in the body, which then need
// not be waited for.
func TestBodyIsNotReadForATimeThatIsKnown(t *testing.T) {
	for name, classify := range map[string]feedback.Classifier{"Google": feedback.Google, "GitHub": feedback.GitHub} {
		body := &scripted{}
		resp, a := peek(body)
		resp.Header.Set("Retry-After", "7")
		assert.Equal(t, refused(wait(7*time.Second)), classify(a), name)
		assert.Zero(t, body.reads, name)
	}
}

func TestBodyIsBounded(t *testing.T) {
	for _, size := range []int{0, 1, 511, 512, 513, feedback.MaxPeek - 1, feedback.MaxPeek, feedback.MaxPeek + 1, 3 * feedback.MaxPeek} {
		want := bytes.Repeat([]byte("0123456789abcdef!"), size/17+1)[:size]
		source := bytes.NewReader(want)
		resp, a := peek(io.NopCloser(source))
		got := a.Body()
		assert.Equal(t, string(want[:min(size, feedback.MaxPeek)]), string(got), size)
		assert.Equal(t, max(0, size-feedback.MaxPeek), source.Len(), "not a byte more is taken")
		rest, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(want, rest), size)
	}
}

func TestBodyThatFails(t *testing.T) {
	boom := errors.New("connection reset")
	for name, script := range map[string][]step{
		"with the last bytes":  {{[]byte("half"), boom}},
		"after the last bytes": {{[]byte("half"), nil}, {nil, boom}},
		"and goes on":          {{[]byte("half"), boom}, {[]byte("more"), nil}},
	} {
		t.Run(name, func(t *testing.T) {
			resp, a := peek(&scripted{script: script})
			assert.Equal(t, "half", string(a.Body()))
			rest, err := io.ReadAll(resp.Body)
			assert.Equal(t, "half", string(rest))
			assert.Same(t, boom, err)
		})
	}
	t.Run("at once", func(t *testing.T) {
		resp, a := peek(&scripted{script: []step{{nil, boom}}})
		assert.Empty(t, a.Body())
		n, err := resp.Body.Read(make([]byte, 1))
		assert.Zero(t, n)
		assert.Same(t, boom, err)
	})
}

// What a body does that never gives anything is left to the caller.
func TestBodyWithoutProgress(t *testing.T) {
	resp, a := peek(io.NopCloser(nothing{}))
	assert.Empty(t, a.Body())
	assert.Equal(t, io.NopCloser(nothing{}), resp.Body)
}

type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, nil }

func TestCloseReachesTheOriginal(t *testing.T) {
	const text = "0123456789"
	for taken := range len(text) + 1 {
		body := &scripted{script: []step{{[]byte(text), nil}, {nil, errors.New("boom")}}}
		resp, a := peek(body)
		a.Body()
		_, err := io.ReadFull(resp.Body, make([]byte, taken))
		require.NoError(t, err)
		assert.Zero(t, body.closed)
		require.ErrorIs(t, resp.Body.Close(), errClosed, "with its own error")
		assert.Equal(t, 1, body.closed)
		n, err := resp.Body.Read(make([]byte, 1))
		assert.Zero(t, n, "nothing is left behind")
		assert.Same(t, errClosed, err)
		_ = resp.Body.Close()
		assert.Equal(t, 2, body.closed)
		assert.Equal(t, text, string(a.Body()))
	}
}

type conn struct{ scripted }

func (*conn) Write(p []byte) (int, error) { return len(p), nil }

// A body that is more than a body stays what it is.
func TestBodyIsNotTouched(t *testing.T) {
	both := &conn{scripted{script: []step{{[]byte("x"), nil}}}}
	plain := &scripted{script: []step{{[]byte("x"), nil}}}
	for name, tc := range map[string]struct {
		status int
		body   io.ReadCloser
	}{
		"no body":             {429, nil},
		"empty":               {429, http.NoBody},
		"101 with a conn":     {101, both},
		"101 without":         {101, plain},
		"103":                 {103, plain},
		"writer behind a 200": {200, both},
	} {
		t.Run(name, func(t *testing.T) {
			resp := respond(tc.status, "")
			resp.Body = tc.body
			a := answer(resp)
			assert.Empty(t, a.Body())
			assert.Empty(t, a.Body())
			assert.True(t, resp.Body == tc.body)
		})
	}
	assert.Zero(t, both.reads)
	assert.Zero(t, plain.reads)
}

// A slow body is waited for, and a request that ends meanwhile ends that wait. Here
// the body is ended as net/http does it: by an error.
func TestBodyThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		resp, a := peek(r)
		gone := errors.New("context ended")
		go func() {
			_, _ = io.WriteString(w, `{"code"`)
			time.Sleep(time.Second)
			w.CloseWithError(gone)
		}()
		began := time.Now()
		assert.Equal(t, `{"code"`, string(a.Body()))
		assert.Equal(t, time.Second, time.Since(began))
		rest, err := io.ReadAll(resp.Body)
		assert.Equal(t, `{"code"`, string(rest))
		assert.Same(t, gone, err)
	})
}

// Closing a body from elsewhere is how a blocked Read is ended.
func TestCloseEndsABlockedRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		long := strings.Repeat("x", feedback.MaxPeek)
		go func() { _, _ = io.WriteString(w, long) }()
		resp, a := peek(r)
		assert.Len(t, a.Body(), feedback.MaxPeek)
		var wg sync.WaitGroup
		wg.Go(func() {
			rest, err := io.ReadAll(resp.Body) // blocks behind what was peeked
			assert.Len(t, rest, feedback.MaxPeek)
			assert.ErrorIs(t, err, io.ErrClosedPipe)
		})
		synctest.Wait()
		require.NoError(t, resp.Body.Close())
		wg.Wait()
	})
}

func TestAnswer(t *testing.T) {
	resp := to("https://api.example/v1", respond(429, "", "Retry-After: 7200"))
	a := answer(resp)
	assert.Equal(t, 429, a.Status())
	assert.Equal(t, resp.Header, a.Header())
	assert.Same(t, resp.Request, a.Request())
	got, capped, ok := a.Wait()
	assert.Equal(t, hour, got)
	assert.True(t, capped)
	assert.True(t, ok)
	assert.Nil(t, answer(respond(429, "")).Request())
}
