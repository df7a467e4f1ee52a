package call

import (
	"net/http"

	"github.com/sluice-go/sluice/examples/internal/departures"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
)

// NewClient returns a client whose requests leave through base at the rate, and are
// logged as they leave.
//
// It does not listen to the partner: the examples show what the pace alone does, and count
// what is refused all the same.
//
// A redirect would leave a second time, unasked, and to another host: it is an
// answer like any other.
func NewClient(base http.RoundTripper, log *departures.Log, rate scheduler.Rate, opts ...shaper.Option) (*http.Client, error) {
	pace, err := shaper.New(rate, opts...)
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Transport:     transport.New(NewRecorder(base, log), pace, transport.WithClassifier(nil)),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}
