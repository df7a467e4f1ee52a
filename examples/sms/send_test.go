package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/examples/internal/call"
	"github.com/sluice-go/sluice/examples/internal/departures"
	"github.com/sluice-go/sluice/internal/partner"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// inMemory brings requests to a partner without a network, so that time in a bubble
// is exact. It notes the lines in the order in which they came.
type inMemory struct {
	http.Handler
	mu    sync.Mutex
	lines []string
}

func (m *inMemory) RoundTrip(req *http.Request) (*http.Response, error) {
	defer req.Body.Close()
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	var msg struct{ Reference string }
	if err := json.Unmarshal(body, &msg); err != nil {
		return nil, err
	}
	m.mu.Lock()
	m.lines = append(m.lines, strings.TrimPrefix(msg.Reference, "line-"))
	m.mu.Unlock()

	at := req.Clone(req.Context())
	at.Body = io.NopCloser(strings.NewReader(string(body)))
	answer := httptest.NewRecorder()
	m.ServeHTTP(answer, at)
	resp := answer.Result()
	resp.Request = req
	return resp, nil
}

// A campaign is a sender and what it sends to, for a bubble.
type campaign struct {
	sender
	partner *partner.Partner
	memory  *inMemory
	log     *departures.Log
	stderr  strings.Builder
}

func newCampaign(t *testing.T, rate scheduler.Rate, workers int, e partner.Endpoint) *campaign {
	p, err := partner.New(partner.Config{SMS: e})
	require.NoError(t, err)
	c := &campaign{partner: p, memory: &inMemory{Handler: p}, log: departures.NewLog(rate)}
	client, err := call.NewClient(c.memory, c.log, rate, shaper.WithTolerance(tolerance(rate)))
	require.NoError(t, err)
	c.sender = sender{
		client: client, url: "http://partner.example/v1/messages", from: "test", workers: workers,
		console: newConsole(&c.stderr, &c.stderr, -1),
	}
	return c
}

func (c *campaign) report() string {
	var b strings.Builder
	c.tally.report(&b, c.log.Summary())
	return b.String()
}

// strict takes ten parts a second, evenly spaced, and not a nanosecond too early.
func strict(latency time.Duration) partner.Endpoint {
	return partner.Endpoint{Limit: partner.Limit{Units: 10, Window: time.Second, Even: true}, Latency: latency}
}

func TestSampleIsSentAsFastAsTheLimitAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCampaign(t, scheduler.PerSecond(10), 4, strict(250*time.Millisecond))
		require.NoError(t, c.send(t.Context(), strings.NewReader(sample)))
		assert.True(t, c.tally.complete())
		assert.Empty(t, c.stderr.String())
		assert.Equal(t, `sent           28
refused        0
failed         0
malformed      0
unsent         0
parts sent     32

wait           p50 100ms, p99 300ms, max 300ms, from handing over until it left
achieved rate  10 parts/s: 31 parts left in the 3.1s before the last departure; asked for 10/s
smallest gap   100ms between two departures

parts per 500ms
        0s  #####                                    5
     500ms  #####                                    5
        1s  #####                                    5
      1.5s  #####                                    5
        2s  #####                                    5
      2.5s  #####                                    5
        3s  ##                                       2
`, c.report())
	})
}

// The file's order is kept, whatever the workers do meanwhile.
func TestOrder(t *testing.T) {
	for _, workers := range []int{1, 3, 50} {
		synctest.Test(t, func(t *testing.T) {
			var in strings.Builder
			var want []string
			for i := range 100 {
				fmt.Fprintf(&in, "100,%s\n", strings.Repeat("long ", i*37%100))
				want = append(want, fmt.Sprint(i+1))
			}
			c := newCampaign(t, scheduler.PerSecond(10), workers, strict(time.Second))
			require.NoError(t, c.send(t.Context(), strings.NewReader(in.String())))
			assert.Equal(t, want, c.memory.lines)
			assert.Equal(t, 100, c.tally.sent)
			assert.LessOrEqual(t, c.partner.Stats().SMS.HighestConcurrency, workers)
		})
	}
}

// Few workers and slow answers make it slower, but do not save up a burst.
func TestWorkersAreTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCampaign(t, scheduler.PerSecond(10), 2, strict(time.Second))
		begin := time.Now()
		require.NoError(t, c.send(t.Context(), strings.NewReader(strings.Repeat("100,a\n", 10))))
		assert.Equal(t, 5100*time.Millisecond, time.Since(begin), "two a second, and the second of each pair 100 ms later")
		assert.Equal(t, 2, c.partner.Stats().SMS.HighestConcurrency)
		assert.Equal(t, 10, c.tally.sent)
	})
}

func TestStricterPartner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCampaign(t, scheduler.PerSecond(20), 4, strict(0))
		require.NoError(t, c.send(t.Context(), strings.NewReader(strings.Repeat("100,a\n", 6))))
		assert.Equal(t, 3, c.tally.sent)
		assert.Equal(t, 3, c.tally.refused)
		assert.False(t, c.tally.complete())
		assert.Equal(t, "line 2: refused: 429 Too Many Requests\n"+
			"line 4: refused: 429 Too Many Requests\n"+
			"line 6: refused: 429 Too Many Requests\n", c.stderr.String())
	})
}

func TestMalformedLinesTakeNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCampaign(t, scheduler.PerSecond(10), 1, strict(0))
		begin := time.Now()
		require.NoError(t, c.send(t.Context(), strings.NewReader("100,a\n,b\n100\n200,c\n")))
		assert.Equal(t, 100*time.Millisecond, time.Since(begin))
		assert.Equal(t, []string{"1", "4"}, c.memory.lines)
		assert.Equal(t, 2, c.tally.malformed)
		assert.False(t, c.tally.complete())
		assert.Equal(t, "line 2: no recipient\nline 3: 1 field, not 2: to,text\n", c.stderr.String())
	})
}

func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(250*time.Millisecond, cancel)
		c := newCampaign(t, scheduler.PerSecond(10), 4, strict(300*time.Millisecond))
		begin := time.Now()
		in := "100,a\n100,b\n100,c\n100,d\n100,\"e\ne\"\n,f\n100,g\n"
		require.NoError(t, c.send(ctx, strings.NewReader(in)))
		assert.Equal(t, 500*time.Millisecond, time.Since(begin), "what has left gets its answer")
		assert.Equal(t, 3, c.tally.sent)
		assert.Equal(t, 1, c.tally.malformed)
		assert.Equal(t, 3, c.tally.unsent)
		assert.Contains(t, c.report(), "unsent         3: lines 4-6, 8\n")
		assert.NotContains(t, c.report(), "what follows")
		assert.EqualValues(t, 3, c.partner.Stats().SMS.Accepted)
		assert.EqualValues(t, 3, c.log.Summary().Count)
	})
}

func TestInterruptedBeforeItBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		c := newCampaign(t, scheduler.PerSecond(10), 4, strict(0))
		require.NoError(t, c.send(ctx, strings.NewReader("100,a\n100,b\n")))
		assert.Contains(t, c.report(), "unsent         2: lines 1-2\n")
		assert.Contains(t, c.report(), "no departures")
		assert.False(t, c.tally.complete())
	})
}

// While all workers wait for answers, nothing is read and Ctrl-C still works.
func TestInterruptedWhileWorkersAreBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		c := newCampaign(t, scheduler.PerSecond(10), 2, strict(10*time.Second))
		require.NoError(t, c.send(ctx, strings.NewReader(strings.Repeat("100,a\n", 5))))
		assert.Equal(t, 2, c.tally.sent)
		assert.Contains(t, c.report(), "unsent         3: lines 3-5\n")
	})
}

// An input that goes on for ever is not read for ever.
func TestInterruptedAtAnOpenInput(t *testing.T) {
	for lines, want := range map[int]string{
		0: "what follows line 0 was neither read nor sent",
		2: "what follows line 2 was neither read nor sent",
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			in, keyboard := io.Pipe()
			go func() { _, _ = io.WriteString(keyboard, strings.Repeat("100,a\n", lines)) }()
			c := newCampaign(t, scheduler.PerSecond(10), 4, strict(0))
			begin := time.Now()
			require.NoError(t, c.send(ctx, in))
			assert.Equal(t, time.Second+lookOn, time.Since(begin))
			assert.Equal(t, lines, c.tally.sent)
			assert.Zero(t, c.tally.unsent)
			assert.False(t, c.tally.complete())
			assert.Contains(t, c.report(), want)
			keyboard.Close() // lets the reader go
		})
	}
}

// A message goes out as soon as it is there; the end of the input is not waited for.
func TestStreaming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, keyboard := io.Pipe()
		c := newCampaign(t, scheduler.PerSecond(10), 4, strict(0))
		go func() {
			_, _ = io.WriteString(keyboard, "100,a\n")
			synctest.Wait()
			c.memory.mu.Lock()
			assert.Equal(t, []string{"1"}, c.memory.lines)
			c.memory.mu.Unlock()
			keyboard.Close()
		}()
		require.NoError(t, c.send(t.Context(), in))
	})
}

func TestReadErrorAfterSomeLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, keyboard := io.Pipe()
		c := newCampaign(t, scheduler.PerSecond(10), 4, strict(0))
		go func() {
			_, _ = io.WriteString(keyboard, "100,a\n100,half a mess")
			keyboard.CloseWithError(io.ErrUnexpectedEOF)
		}()
		assert.Equal(t, io.ErrUnexpectedEOF, c.send(t.Context(), in))
		assert.Equal(t, []string{"1"}, c.memory.lines)
	})
}
