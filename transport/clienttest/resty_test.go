package clienttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"testing"
	"time"

	resty "github.com/go-resty/resty/v2"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/partner"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	"github.com/sluice-go/sluice/transport/feedback"
)

const text = `{"from":"sluice","to":"+4670123456","text":"hi","reference":"1"}`

var accepted = answer(http.StatusAccepted, isJSON, `{"id":"1","status":"accepted","segments":1}`)

// resty v2 takes the Transport. With SetRetryCount above 0 it retries every failure to
// send, unless there is a condition: then the conditions alone decide.
func Example_resty() {
	url, stop := partnerServer()
	defer stop()

	pace, err := shaper.New(scheduler.PerSecond(10))
	if err != nil {
		log.Fatal(err)
	}
	client := resty.New().
		SetTransport(transport.New(nil, pace)).
		SetRetryCount(2).
		AddRetryCondition(func(r *resty.Response, err error) bool {
			if _, refused := errors.AsType[*transport.Error](err); refused {
				return false
			}
			return err != nil || r.StatusCode() == http.StatusTooManyRequests
		})

	resp, err := client.R().SetHeader("Content-Type", "application/json").SetBody(text).Post(url + "/v1/messages")
	if err != nil {
		log.Fatal(err)
	}
	report(resp.Status(), err)

	// Output: 202 Accepted
}

func restyPlug(retries int, conditions ...resty.RetryConditionFunc) plug {
	return func(_ *testing.T, url string, rt http.RoundTripper) func(context.Context) error {
		client := resty.New().SetTransport(rt).SetRetryCount(retries).SetRetryWaitTime(time.Millisecond).SetLogger(silent{})
		for _, c := range conditions {
			client.AddRetryCondition(c)
		}
		return func(ctx context.Context) error {
			resp, err := client.R().SetContext(ctx).SetHeader("Content-Type", isJSON).SetBody(text).Post(url + "/v1/messages")
			if err == nil && resp.IsError() {
				return errors.New(resp.Status())
			}
			return err
		}
	}
}

func restySubject(p plug) subject {
	return subject{
		plug:       p,
		careless:   restyPlug(2),
		attempts:   3,
		accept:     accepted,
		refuse:     answer(http.StatusTooManyRequests, isJSON, `{}`, "Retry-After", "0.4"),
		classifier: feedback.Default,
		hold:       400 * time.Millisecond,
	}
}

func TestResty(t *testing.T) {
	t.Parallel()
	t.Run("without retries", func(t *testing.T) { t.Parallel(); restySubject(restyPlug(0)).check(t) })
	t.Run("with a condition", func(t *testing.T) {
		t.Parallel()
		restySubject(restyPlug(2, func(r *resty.Response, err error) bool {
			if _, refused := errors.AsType[*transport.Error](err); refused {
				return false
			}
			return err != nil || r.StatusCode() == http.StatusTooManyRequests
		})).check(t)
	})
}

// One condition that says yes is enough, whatever another says.
func TestRestyConditions(t *testing.T) {
	t.Parallel()
	notOurs := func(_ *resty.Response, err error) bool { return err != nil && !isLocal(err) }
	anything := func(_ *resty.Response, err error) bool { return err != nil }
	w := &turns{shaper: exhausted(t, shaper.WithQueue(1))}
	require.Error(t, restyPlug(2, notOurs, anything)(t, "http://127.0.0.1:1", transport.New(nil, w))(t.Context()))
	require.EqualValues(t, 3, w.asked.Load())
}

// The fake partner keeps score: it enforces its limit strictly, and counts calls that
// come while it has told them to stay away.
func TestRestyAgainstPartner(t *testing.T) {
	t.Parallel()
	p, err := partner.New(partner.Config{SMS: partner.Endpoint{Limit: partner.Limit{Units: 1, Window: interval}}})
	require.NoError(t, err)
	p.SMS().Refuse(1, time.Second)
	url, stop, err := p.Start()
	require.NoError(t, err)
	t.Cleanup(stop)

	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	// Slower than the partner allows: the network of a busy machine may bring two closer
	// together.
	call := restyPlug(0)(t, url, transport.New(base, exactly(t, 10*interval)))
	require.Error(t, call(t.Context()))
	together(t, 5, call)

	stats := p.Stats().SMS
	require.EqualValues(t, 5, stats.Accepted)
	require.EqualValues(t, 1, stats.Refused)
	require.EqualValues(t, 0, stats.CallsDuringHold)
}

// partnerServer starts the fake partner.
func partnerServer() (url string, stop func()) {
	p, err := partner.New(partner.Config{})
	if err != nil {
		log.Fatal(err)
	}
	url, stop, err = p.Start()
	if err != nil {
		log.Fatal(err)
	}
	return url, stop
}

// silent is a logger for clients that insist on having one.
type silent struct{}

func (silent) Errorf(format string, v ...any) { fmt.Fprintf(io.Discard, format, v...) }
func (silent) Warnf(format string, v ...any)  { fmt.Fprintf(io.Discard, format, v...) }
func (silent) Debugf(format string, v ...any) { fmt.Fprintf(io.Discard, format, v...) }
