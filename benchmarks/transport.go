package main

import (
	"io"
	"net/http"
	"strings"

	"github.com/sluice-go/sluice/transport"
)

// Transport: one request at a time through a RoundTripper whose limiter never makes it
// wait, over a base that answers at once and does nothing. added-ns/request is against
// the bare base, measured in turn in the same process; so is added-allocs/request. Ours
// is transport.New with a Shaper; x/time's stands in the plainest wrapper there is, which
// waits and sends, without the duties that ours takes on.
func transportScenario() scenario {
	return scenario{
		name:     "Transport/base=stub",
		subjects: choose(subjects, isWaiter),
		measure: func(s subject, scale scale) (sample, error) {
			paced, err := measureDecision(requests(wrap(s)), 1, scale.decisions)
			if err != nil {
				return nil, err
			}
			bare, err := measureDecision(requests(stub{}), 1, scale.decisions)
			if err != nil {
				return nil, err
			}
			return sample{
				{"added-ns/request", paced[0].Value - bare[0].Value},
				{"added-allocs/request", paced[1].Value - bare[1].Value},
			}, nil
		},
	}
}

// wrap returns the stub behind the subject's limiter.
func wrap(s subject) http.RoundTripper {
	w := s.ready().waiter
	if s.name == subjects[0].name {
		return transport.New(stub{}, w)
	}
	return plain{stub{}, w}
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

var answer = &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(""))}

func (stub) RoundTrip(*http.Request) (*http.Response, error) { return answer, nil }

// requests returns a function that sends one request and reports whether it was
// answered.
func requests(rt http.RoundTripper) func() bool {
	req := must(http.NewRequestWithContext(live, http.MethodGet, "https://partner.example/", nil))
	return func() bool {
		resp, err := rt.RoundTrip(req)
		return err == nil && resp == answer
	}
}
