package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/examples/internal/call"
	"github.com/sluice-go/sluice/internal/partner"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// These tests run the program as it is, on the real clock and the real loopback.
// They know lower bounds of the time it takes, and no upper ones.

// A result is what a run leaves behind.
type result struct {
	status         int
	stdout, stderr string
}

func (r result) String() string { return fmt.Sprintf("exit %d\n%s%s", r.status, r.stdout, r.stderr) }

func runWith(ctx context.Context, stdin string, args ...string) result {
	var stdout, stderr bytes.Buffer
	status := run(ctx, args, strings.NewReader(stdin), &stdout, &stderr)
	return result{status, stdout.String(), stderr.String()}
}

// start starts a partner that takes so many parts an hour, so that it is no matter
// of time how many it refuses.
func start(t *testing.T, parts int64) (*partner.Partner, string) {
	p, err := partner.New(partner.Config{SMS: partner.Endpoint{Limit: partner.Limit{Units: parts, Window: time.Hour}}})
	require.NoError(t, err)
	url, stop, err := p.Start()
	require.NoError(t, err)
	t.Cleanup(stop)
	return p, url
}

func serve(t *testing.T, f http.HandlerFunc) string {
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s.URL
}

func TestRunSample(t *testing.T) {
	p, url := start(t, 1000)
	begin := time.Now()
	r := runWith(t.Context(), "", "-url", url, "-rate", "100/s")
	assert.GreaterOrEqual(t, time.Since(begin), 31*10*time.Millisecond-5*time.Millisecond)
	assert.Equal(t, 0, r.status, r)
	assert.Contains(t, r.stdout, "parts sent     32\n")
	assert.Empty(t, r.stderr)
	assert.NotContains(t, r.stdout, "\x1b")
	assert.EqualValues(t, 32, p.Stats().SMS.AcceptedUnits)
}

func TestRunWithItsOwnPartner(t *testing.T) {
	// The partner is strict. If the machine holds one call up for longer than it
	// lets pass, the next comes too early. That can happen, but not each time.
	var r result
	for range 20 {
		r = runWith(t.Context(), "100,a\n100,b\n100,c\n100,d\n", "-in", "-", "-rate", "20/s")
		if r.status == 0 {
			break
		}
	}
	assert.Equal(t, 0, r.status, r)
	assert.Contains(t, r.stdout, "sent           4\n")
	assert.Empty(t, r.stderr)
}

func TestRunUnlimited(t *testing.T) {
	p, url := start(t, 1000)
	r := runWith(t.Context(), strings.Repeat("100,a\n", 200), "-in", "-", "-url", url, "-rate", "unlimited", "-workers", "8")
	assert.Equal(t, 0, r.status, r)
	assert.EqualValues(t, 200, p.Stats().SMS.Accepted)
}

func TestRunAgainstAStricterPartner(t *testing.T) {
	_, url := start(t, 5)
	r := runWith(t.Context(), strings.Repeat("100,a\n", 8), "-in", "-", "-url", url, "-rate", "100/s")
	assert.Equal(t, 1, r.status, r)
	assert.Contains(t, r.stdout, "sent           5\nrefused        3\n")
	assert.Equal(t, 3, strings.Count(r.stderr, ": refused: 429 Too Many Requests\n"), r)
	assert.Contains(t, r.stderr, "line 8: ")
}

func TestRunFailures(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	closed := "http://" + ln.Addr().String()
	ln.Close()
	var asked atomic.Int64
	for _, test := range []struct{ name, url, reason string }{
		{"no server", closed, "dial tcp"},
		{"an error", serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusTeapot)
		}), "418 I'm a teapot\n"},
		{"a redirect", serve(t, func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}), "307 Temporary Redirect\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := runWith(t.Context(), "+12025550101,secret\n+12025550102,secret\n", "-in", "-", "-url", test.url, "-rate", "100/s")
			assert.Equal(t, 1, r.status, r)
			assert.Contains(t, r.stdout, "failed         2\n")
			assert.Equal(t, 2, strings.Count(r.stderr, ": failed: "+test.reason), r)
			assert.NotContains(t, r.String(), "2025550", "numbers and texts are private")
			assert.NotContains(t, r.String(), "secret")
		})
	}
	assert.EqualValues(t, 2, asked.Load(), "a redirect is not followed")
}

func TestRunFile(t *testing.T) {
	p, url := start(t, 1000)
	file := filepath.Join(t.TempDir(), "messages.csv")
	require.NoError(t, os.WriteFile(file, []byte("to,text\n100,a\n,b\n100,\"c\n100,d\n"), 0o600))
	r := runWith(t.Context(), "", "-in", file, "-url", url+"/", "-rate", "100/s", "-from", "me")
	assert.Equal(t, 1, r.status, r)
	assert.Equal(t, "line 3: no recipient\nline 4: a quote is not closed\n", r.stderr)
	assert.Contains(t, r.stdout, "sent           2\n")
	assert.Contains(t, r.stdout, "malformed      2\n")
	assert.EqualValues(t, 2, p.Stats().SMS.Accepted)
}

// The second message would have to wait for an hour.
func TestRunInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		w.WriteHeader(http.StatusAccepted)
	})
	r := runWith(ctx, "to,text\n"+strings.Repeat("100,a\n", 9), "-in", "-", "-url", url, "-rate", "1/h")
	assert.Equal(t, 1, r.status, r)
	assert.Contains(t, r.stdout, "sent           1\n")
	assert.Contains(t, r.stdout, "unsent         8: lines 3-10\n")
	assert.Equal(t, "sms: interrupted; waiting for the answers to what has left (again: kill)\n", r.stderr)
}

func TestRunRejects(t *testing.T) {
	for name, args := range map[string][]string{
		"a flag":      {"-nonsense"},
		"rate 0":      {"-rate", "0/s"},
		"no rate":     {"-rate", "fast"},
		"an argument": {"messages.csv"},
		"no workers":  {"-workers", "0"},
		"a crowd":     {"-workers", "1001"},
		"a URL":       {"-url", "sms.example"},
		"no file":     {"-in", filepath.Join(t.TempDir(), "none")},
		"a directory": {"-in", t.TempDir()},
	} {
		t.Run(name, func(t *testing.T) {
			r := runWith(t.Context(), "", args...)
			assert.Equal(t, 2, r.status, r)
			assert.NotEmpty(t, r.stderr)
		})
	}
	r := runWith(t.Context(), "", "-h")
	assert.Equal(t, 0, r.status)
	assert.Contains(t, r.stderr, "-rate")
}

func TestRunNothing(t *testing.T) {
	r := runWith(t.Context(), "", "-in", "-")
	assert.Equal(t, 0, r.status, r)
	assert.Contains(t, r.stdout, "no departures")
}

// What the partner on loopback enforces must be a limit that it takes, at any rate.
func TestLimit(t *testing.T) {
	for _, text := range []string{"unlimited", "1000000000/s", "9223372036854775807/1ns", "1000/s", "3/s", "10/s", "1/h", "1/30d", "5/24h"} {
		rate, err := scheduler.ParseRate(text)
		require.NoError(t, err)
		_, err = partner.New(partner.Config{SMS: partner.Endpoint{Limit: limit(rate)}})
		assert.NoError(t, err, text)
		_, err = call.NewClient(http.DefaultTransport, nil, rate, shaper.WithTolerance(tolerance(rate)))
		assert.NoError(t, err, text)
	}
	assert.Equal(t, partner.Limit{Units: 10, Window: time.Second, Even: true, Slack: 50 * time.Millisecond}, limit(scheduler.PerSecond(10)))
	assert.Equal(t, partner.Limit{Units: 100, Window: time.Second, Slack: 100 * time.Millisecond}, limit(scheduler.PerSecond(100)))
	assert.Equal(t, 2500*time.Microsecond, tolerance(scheduler.PerSecond(100)))
	assert.Equal(t, 5*time.Millisecond, tolerance(scheduler.PerSecond(10)))
}

// A reader of the progress must find a console that is safe for concurrent use.
func TestConsoleConcurrently(t *testing.T) {
	var b bytes.Buffer
	c := newConsole(&b, &b, 10)
	c.bar = newBar(&b, 10)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			c.show(int64(i), "text")
			c.say("line %d", i)
		})
	}
	wg.Wait()
	c.end()
	assert.Equal(t, 8, strings.Count(b.String(), "\n"))
}
