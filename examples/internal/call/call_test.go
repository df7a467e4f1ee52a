package call_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/examples/internal/call"
	"github.com/sluice-go/sluice/examples/internal/departures"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/transport"
)

type baseFunc func(*http.Request) (*http.Response, error)

func (f baseFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// body notes that it was closed.
type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error { b.closed = true; return nil }

func newCall(ctx context.Context, t *testing.T) (*call.Call, *body) {
	b := &body{Reader: strings.NewReader("x")}
	req, err := http.NewRequest(http.MethodPost, "http://user:secret@partner.example/?token=secret", b)
	require.NoError(t, err)
	return call.New(ctx, req, 1), b
}

// answerAfter is a base that takes its time.
func answerAfter(d time.Duration, status int) baseFunc {
	return func(req *http.Request) (*http.Response, error) {
		req.Body.Close()
		select {
		case <-time.After(d):
		case <-req.Context().Done():
			return nil, context.Cause(req.Context())
		}
		return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader("answer")), Request: req}, nil
	}
}

// newClient returns a client that lets one request leave in ten seconds.
func newClient(t *testing.T, base http.RoundTripper) (*http.Client, *departures.Log) {
	rate := scheduler.Every(10 * time.Second)
	log := departures.NewLog(rate)
	client, err := call.NewClient(base, log, rate)
	require.NoError(t, err)
	return client, log
}

func TestOutcomes(t *testing.T) {
	for status, outcome := range map[int]call.Outcome{
		200: call.Accepted, 201: call.Accepted, 202: call.Accepted,
		429: call.Refused, 503: call.Refused,
		302: call.Failed, 400: call.Failed, 422: call.Failed, 500: call.Failed,
	} {
		synctest.Test(t, func(t *testing.T) {
			client, log := newClient(t, answerAfter(time.Second, status))
			c, _ := newCall(t.Context(), t)
			a := c.Do(client)
			assert.Equal(t, outcome, a.Outcome, status)
			assert.Equal(t, status, a.Status)
			assert.Equal(t, "answer", string(a.Body))
			assert.EqualValues(t, 1, log.Summary().Count)
		})
	}
}

func TestCancelledInTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		client, log := newClient(t, answerAfter(0, 202))
		first, _ := newCall(ctx, t)
		assert.Equal(t, call.Accepted, first.Do(client).Outcome)

		time.AfterFunc(3*time.Second, cancel)
		second, b := newCall(ctx, t)
		a := second.Do(client)
		assert.Equal(t, call.Unsent, a.Outcome)
		assert.ErrorIs(t, a.Err, transport.ErrNotSent)
		assert.True(t, b.closed)

		third, b := newCall(ctx, t) // the context is dead before
		assert.Equal(t, call.Unsent, third.Do(client).Outcome)
		assert.True(t, b.closed)
		assert.EqualValues(t, 1, log.Summary().Count)
	})
}

func TestCancelledAfterItLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		client, _ := newClient(t, answerAfter(10*time.Second, 202))
		c, _ := newCall(ctx, t)
		time.AfterFunc(time.Second, func() {
			<-c.Left() // it has, so this does not block
			cancel()
		})
		assert.Equal(t, call.Accepted, c.Do(client).Outcome, "what has left gets its answer")
	})
}

func TestCancelledAsItLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		log := departures.NewLog(scheduler.PerSecond(1))
		recorder := call.NewRecorder(baseFunc(func(*http.Request) (*http.Response, error) {
			t.Error("sent after its context had ended")
			return nil, errors.New("sent")
		}), log)
		// The line lets it go, and only then the context ends.
		late := baseFunc(func(req *http.Request) (*http.Response, error) {
			cancel()
			return recorder.RoundTrip(req)
		})
		c, b := newCall(ctx, t)
		assert.Equal(t, call.Unsent, c.Do(&http.Client{Transport: late}).Outcome)
		assert.True(t, b.closed)
		assert.Zero(t, log.Summary().Count)
	})
}

func TestNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := newClient(t, answerAfter(time.Hour, 202))
		c, _ := newCall(t.Context(), t)
		begin := time.Now()
		a := c.Do(client)
		assert.Equal(t, call.Failed, a.Outcome)
		assert.Equal(t, "no answer within 30s", a.Reason())
		assert.Equal(t, 30*time.Second, time.Since(begin))
	})
}

// An answer without an end is not waited for, and an end that breaks off does not
// change what the status said.
func TestLongAndBrokenAnswers(t *testing.T) {
	for name, content := range map[string]io.Reader{
		"endless": endless{},
		"broken":  io.MultiReader(strings.NewReader("answer"), broken{}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answer := &body{Reader: content}
				client, _ := newClient(t, baseFunc(func(req *http.Request) (*http.Response, error) {
					req.Body.Close()
					return &http.Response{StatusCode: 202, Body: answer, Request: req}, nil
				}))
				c, _ := newCall(t.Context(), t)
				a := c.Do(client)
				assert.Equal(t, call.Accepted, a.Outcome)
				assert.LessOrEqual(t, len(a.Body), 64<<10)
				assert.True(t, answer.closed)
			})
		})
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestReasonGivesNoSecretAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := newClient(t, baseFunc(func(req *http.Request) (*http.Response, error) {
			return nil, errors.New("connection refused")
		}))
		c, _ := newCall(t.Context(), t)
		a := c.Do(client)
		assert.Equal(t, call.Failed, a.Outcome)
		assert.Equal(t, "connection refused", a.Reason())
	})
}

// Closing idle connections has to find its way through the recorder.
func TestUnwrap(t *testing.T) {
	base := &http.Transport{}
	assert.Same(t, base, call.NewRecorder(base, nil).Unwrap())
}
