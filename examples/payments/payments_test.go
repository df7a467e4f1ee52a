package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/partner"
)

// These tests run the program as it is, on the real clock and the real loopback.
// They know lower bounds of the time it takes, and no upper ones.

type result struct {
	status         int
	stdout, stderr string
}

func (r result) String() string { return fmt.Sprintf("exit %d\n%s%s", r.status, r.stdout, r.stderr) }

func runWith(ctx context.Context, args ...string) result {
	var stdout, stderr bytes.Buffer
	status := run(ctx, args, &stdout, &stderr)
	return result{status, stdout.String(), stderr.String()}
}

// start starts a partner that takes so many payments an hour, five at a time.
func start(t *testing.T, payments int64) (*partner.Partner, string) {
	p, err := partner.New(partner.Config{Payments: partner.Endpoint{
		Limit:   partner.Limit{Units: payments, Window: time.Hour},
		Latency: 20 * time.Millisecond,
	}})
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

func TestRunWithItsOwnPartner(t *testing.T) {
	begin := time.Now()
	r := runWith(t.Context(), "-n", "10")
	assert.GreaterOrEqual(t, time.Since(begin), 9*40*time.Millisecond-5*time.Millisecond)
	assert.Equal(t, 0, r.status, r)
	assert.Contains(t, r.stdout, "sent           10 of 10\ncharged        10\nrefused        0\nfailed         0\nunsent         0\n")
	assert.Regexp(t, `payment \w+-\d{4}, sent again with its key: pay_\d+ as before, nothing charged\n`, r.stdout)
	assert.Contains(t, r.stdout, "charges 10, replays 1, duplicate_charges 0, refused 0\n")
	assert.Empty(t, r.stderr)
}

// The partner takes five at a time, and nothing but the program's own bound keeps
// it from more.
func TestNoMoreThanFiveAtATime(t *testing.T) {
	p, url := start(t, 1000)
	r := runWith(t.Context(), "-n", "60", "-rate", "unlimited", "-url", url)
	assert.Equal(t, 0, r.status, r)
	assert.EqualValues(t, 60, p.Stats().Payments.Charges)
	assert.EqualValues(t, 1, p.Stats().Payments.Replays)
	assert.LessOrEqual(t, p.Stats().Payments.HighestConcurrency, atATime)
}

func TestRunAgainstAStricterPartner(t *testing.T) {
	p, url := start(t, 3)
	r := runWith(t.Context(), "-n", "8", "-rate", "200/s", "-url", url)
	assert.Equal(t, 1, r.status, r)
	assert.Contains(t, r.stdout, "charged        3\nrefused        5\n")
	assert.Contains(t, r.stdout, "sent again with its key: 429 Too Many Requests\n")
	assert.Contains(t, r.stderr, ": 429 Too Many Requests\n")
	assert.EqualValues(t, 3, p.Stats().Payments.Charges)
}

// A partner that takes no notice of the key is found out.
func TestRunAgainstAForgetfulPartner(t *testing.T) {
	var charges atomic.Int64
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.NotFound(w, r)
			return
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"id":"%d"}`, charges.Add(1))
	})
	r := runWith(t.Context(), "-n", "1", "-rate", "200/s", "-url", url)
	assert.Equal(t, 1, r.status, r)
	assert.Contains(t, r.stdout, "charged twice, as 1 and 2\n")
	assert.Contains(t, r.stdout, "the partner tells no score\n")
}

func TestRunAgainstAPartnerThatChargesTwice(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"id":"1"}`)
			return
		}
		fmt.Fprint(w, `{"payments":{"charges":2,"duplicate_charges":1}}`)
	})
	r := runWith(t.Context(), "-n", "1", "-rate", "200/s", "-url", url)
	assert.Equal(t, 1, r.status, r)
	assert.Contains(t, r.stdout, "duplicate_charges 1")
}

func TestRunFailures(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusTeapot) })
	r := runWith(t.Context(), "-n", "3", "-rate", "200/s", "-url", url)
	assert.Equal(t, 1, r.status, r)
	assert.Contains(t, r.stdout, "failed         3\n")
	assert.NotContains(t, r.stdout, "sent again", "there is no charge to repeat")
}

// The second payment would have to wait for an hour.
func TestRunInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		w.WriteHeader(http.StatusCreated)
	})
	r := runWith(ctx, "-n", "1000000000", "-rate", "1/h", "-url", url)
	assert.Equal(t, 1, r.status, r)
	assert.Contains(t, r.stdout, "sent           1 of 1000000000\ncharged        1\nrefused        0\nfailed         0\nunsent         999999999\n")
	assert.Contains(t, r.stderr, "payments: interrupted")
}

func TestRunRejects(t *testing.T) {
	for name, args := range map[string][]string{
		"a flag": {"-nonsense"}, "rate 0": {"-rate", "0/s"}, "none": {"-n", "0"}, "an argument": {"x"}, "a URL": {"-url", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			r := runWith(t.Context(), args...)
			assert.Equal(t, 2, r.status, r)
			assert.NotEmpty(t, r.stderr)
		})
	}
	assert.Equal(t, 0, runWith(t.Context(), "-h").status)
}

func TestPayment(t *testing.T) {
	one, other := newBatch(), newBatch()
	assert.Equal(t, one(1), one(1))
	assert.Equal(t, one(1).key(), one(1).key(), "a payment has one key, however often it is sent")
	assert.NotEqual(t, one(1).key(), one(2).key())
	assert.NotEqual(t, one(1).key(), other(1).key(), "another run has other payments")

	req, err := one(1).request(t.Context(), "http://partner.example")
	require.NoError(t, err)
	assert.Equal(t, []string{one(1).key()}, req.Header.Values("Idempotency-Key"))
	require.NotNil(t, req.GetBody)
	again, err := req.GetBody()
	require.NoError(t, err)
	body, err := io.ReadAll(again)
	require.NoError(t, err)
	var sent payment
	require.NoError(t, json.Unmarshal(body, &sent))
	assert.Equal(t, one(1), sent)
}
