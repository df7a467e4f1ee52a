package main

import (
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime/metrics"
	"time"

	"github.com/sluice-go/sluice/transport"
)

// Transport: one request at a time through a RoundTripper whose limiter never makes it
// wait. All figures are against the bare base, in the same process: the median of the
// differences of several turns. Allocations and goroutines, those that were started, are
// of the whole process, a server included, and rounded to whole ones.
//
// base=stub answers at once and does nothing; base=loopback is an http.Transport with a
// connection to an http.Server in the process.
//
// Ours is transport.New with a Shaper; x/time's stands in the plainest wrapper there is,
// which waits and sends, without the duties that ours takes on.
func transportScenarios() []scenario {
	var all []scenario
	for _, b := range bases {
		all = append(all, scenario{
			name:     "Transport/base=" + b.name,
			rounds:   targetRounds,
			subjects: choose(subjects, isWaiter),
			measure: func(s subject, scale scale) (sample, error) {
				rt, url, stop := b.start()
				defer stop()
				return measureTransport(requests(wrap(s, rt), url), requests(rt, url), scale)
			},
		})
	}
	return all
}

var bases = []struct {
	name  string
	start func() (base http.RoundTripper, url string, stop func())
}{
	{"stub", func() (http.RoundTripper, string, func()) {
		return stub{}, "https://partner.example/", func() {}
	}},
	{"loopback", func() (http.RoundTripper, string, func()) {
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		return &http.Transport{}, server.URL, server.Close
	}},
}

func measureTransport(paced, bare func() bool, scale scale) (sample, error) {
	const turns = 5
	var nanos, allocs, goroutines []float64
	for range turns {
		with, err := measureRequests(paced, scale.decisions)
		if err != nil {
			return nil, err
		}
		without, err := measureRequests(bare, scale.decisions)
		if err != nil {
			return nil, err
		}
		nanos = append(nanos, with.nanos-without.nanos)
		allocs = append(allocs, with.allocs-without.allocs)
		goroutines = append(goroutines, with.goroutines-without.goroutines)
	}
	return sample{
		{"added-ns/request", median(nanos)},
		{"added-allocs/request", whole(median(allocs))},
		{"added-goroutines/request", whole(median(goroutines))},
	}, nil
}

// whole rounds, and not to a negative zero.
func whole(x float64) float64 { return math.Round(x) + 0 }

// perRequest is what one request costs on average.
type perRequest struct{ nanos, allocs, goroutines float64 }

// measureRequests sends requests for about d.
func measureRequests(send func() bool, d time.Duration) (perRequest, error) {
	n, started := 0, goroutinesStarted()
	u := startUsage()
	for time.Since(u.began) < d {
		for range 10 { // so that looking at the clock costs next to nothing
			if !send() {
				return perRequest{}, errors.New("a request got no answer")
			}
			n++
		}
	}
	u.stop()
	each := func(x float64) float64 { return x / float64(n) }
	return perRequest{
		nanos:      each(float64(u.elapsed.Nanoseconds())),
		allocs:     each(float64(u.allocs)),
		goroutines: each(float64(goroutinesStarted() - started)),
	}, nil
}

// goroutinesStarted returns how many goroutines have been started so far.
func goroutinesStarted() uint64 {
	s := []metrics.Sample{{Name: "/sched/goroutines-created:goroutines"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// wrap returns the base behind the subject's limiter.
func wrap(s subject, base http.RoundTripper) http.RoundTripper {
	w := s.ready().waiter
	if s.name == subjects[0].name {
		return transport.New(base, w)
	}
	return plain{base, w}
}

// plain waits and sends.
type plain struct {
	base   http.RoundTripper
	waiter waiter
}

func (p plain) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := p.waiter.Wait(req.Context()); err != nil {
		return nil, err
	}
	return p.base.RoundTrip(req)
}

// stub answers at once.
type stub struct{}

var answer = &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}

func (stub) RoundTrip(*http.Request) (*http.Response, error) { return answer, nil }

// requests returns a function that sends one request and reports whether it was
// answered.
func requests(rt http.RoundTripper, url string) func() bool {
	req := must(http.NewRequestWithContext(live, http.MethodGet, url, nil))
	return func() bool {
		resp, err := rt.RoundTrip(req)
		if err != nil {
			return false
		}
		_, err = io.Copy(io.Discard, resp.Body) // so that the connection can be used again
		return errors.Join(err, resp.Body.Close()) == nil && resp.StatusCode == http.StatusOK
	}
}
