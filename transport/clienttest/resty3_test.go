package clienttest

import (
	"context"
	"errors"
	"log"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"resty.dev/v3"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
)

// resty v3 takes the Transport. By itself it retries only what says that it is temporary,
// which a local refusal does not; conditions of one's own have to be told.
func Example_resty3() {
	url, stop := partnerServer()
	defer stop()

	pace, err := shaper.New(scheduler.PerSecond(10))
	if err != nil {
		log.Fatal(err)
	}
	client := resty.New().
		SetTransport(transport.New(nil, pace)).
		SetRetryCount(2).
		AddRetryConditions(func(r *resty.Response, err error) bool {
			if _, refused := errors.AsType[*transport.Error](err); refused {
				return false
			}
			return err != nil || r.StatusCode() == http.StatusTooManyRequests
		})
	defer client.Close()

	resp, err := client.R().SetHeader("Content-Type", "application/json").SetBody(text).Post(url + "/v1/messages")
	if err != nil {
		log.Fatal(err)
	}
	report(resp.Status(), err)

	// Output: 202 Accepted
}

func resty3Plug(wrap func(http.RoundTripper) http.RoundTripper, conditions ...resty.RetryConditionFunc) plug {
	return func(t *testing.T, url string, rt http.RoundTripper) func(context.Context) error {
		client := resty.New().SetTransport(wrap(rt)).SetLogger(silent{}).
			SetRetryCount(2).SetRetryWaitTime(time.Millisecond).SetRetryAllowNonIdempotent(true).
			AddRetryConditions(conditions...)
		t.Cleanup(func() { _ = client.Close() })
		return func(ctx context.Context) error {
			resp, err := client.R().SetContext(ctx).SetHeader("Content-Type", isJSON).SetBody(text).Post(url + "/v1/messages")
			if err == nil && resp.IsStatusFailure() {
				return errors.New(resp.Status())
			}
			return err
		}
	}
}

func TestResty3(t *testing.T) {
	t.Parallel()
	s := restySubject(resty3Plug(asIs))
	s.careless = resty3Plug(func(rt http.RoundTripper) http.RoundTripper { return temporary{rt} })
	s.check(t)
}

// A condition that looks at nothing but the error is asked about a local refusal too.
func TestResty3Condition(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		condition resty.RetryConditionFunc
		asked     int
	}{
		{func(_ *resty.Response, err error) bool { return err != nil }, 3},
		{func(_ *resty.Response, err error) bool { return err != nil && !isLocal(err) }, 1},
	} {
		w := &turns{shaper: exhausted(t, shaper.WithQueue(1))}
		require.Error(t, resty3Plug(asIs, c.condition)(t, "http://127.0.0.1:1", transport.New(nil, w))(t.Context()))
		require.EqualValues(t, c.asked, w.asked.Load())
	}
}

// temporary has every error say that it is.
type temporary struct{ http.RoundTripper }

func (r temporary) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, temporaryError{err}
	}
	return resp, nil
}

type temporaryError struct{ error }

func (temporaryError) Temporary() bool { return true }
