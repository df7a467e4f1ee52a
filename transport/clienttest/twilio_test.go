package clienttest

import (
	"context"
	"log"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	twilio "github.com/twilio/twilio-go/client"
	openapi "github.com/twilio/twilio-go/rest/api/v2010"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	"github.com/sluice-go/sluice/transport/feedback"
)

const twilioAccount = "AC0123456789"

var twilioQueued = answer(http.StatusCreated, isJSON, `{"sid":"SM1","status":"queued"}`)

// twilio-go takes its own Client, which has an *http.Client. To twilio.NewRestClientWithParams
// that Client is ClientParams.Client. The calls have no context, so the Timeout of the
// http.Client bounds the wait in the line as well.
func Example_twilio() {
	server, stop := serving(twilioQueued)
	defer stop()

	pace, err := shaper.New(scheduler.PerSecond(10))
	if err != nil {
		log.Fatal(err)
	}
	base := sendTo(server, nil) // in earnest: nil
	client := &twilio.Client{
		Credentials: twilio.NewCredentials(twilioAccount, "token"),
		HTTPClient: &http.Client{
			Transport: transport.New(base, pace, transport.WithClassifier(feedback.Twilio)),
			Timeout:   30 * time.Second,
		},
	}
	client.SetAccountSid(twilioAccount)
	api := openapi.NewApiServiceWithClient(client)

	message, err := api.CreateMessage((&openapi.CreateMessageParams{}).SetTo("+4670").SetFrom("+4671").SetBody("hi"))
	if err != nil {
		log.Fatal(err)
	}
	report(*message.Status, err)

	// Output: queued
}

func TestTwilio(t *testing.T) {
	t.Parallel()
	subject{
		plug: func(_ *testing.T, url string, rt http.RoundTripper) func(context.Context) error {
			client := &twilio.Client{
				Credentials: twilio.NewCredentials(twilioAccount, "token"),
				HTTPClient:  &http.Client{Transport: sendTo(url, rt)},
			}
			client.SetAccountSid(twilioAccount)
			api := openapi.NewApiServiceWithClient(client)
			return func(context.Context) error {
				_, err := api.CreateMessage((&openapi.CreateMessageParams{}).SetTo("+4670").SetFrom("+4671").SetBody("hi"))
				return err
			}
		},
		accept:     twilioQueued,
		refuse:     answer(http.StatusTooManyRequests, isJSON, `{"code":20429,"message":"Too Many Requests","status":429}`, "Retry-After", "1"),
		classifier: feedback.Twilio,
		hold:       time.Second,
		noContext:  true,
	}.check(t)
}

// Without a context it is the Timeout of the http.Client that the line goes by: what
// cannot make it is refused on arrival, and the typed error is there.
func TestTwilioTimeout(t *testing.T) {
	t.Parallel()
	client := &twilio.Client{
		Credentials: twilio.NewCredentials(twilioAccount, "token"),
		HTTPClient:  &http.Client{Transport: transport.New(nil, exhausted(t)), Timeout: time.Minute},
	}
	client.SetAccountSid(twilioAccount)
	_, err := openapi.NewApiServiceWithClient(client).FetchMessage("SM1", nil)
	requireNotSent(t, err, shaper.ErrDeadline)
}

// twilio-go leaves the body of an error answer open. It keeps no place in flight all the same:
// with two of them refused there is one for the next call, long before the Timeout ends theirs.
func TestTwilioLeavesBodiesOpen(t *testing.T) {
	t.Parallel()
	refused := answer(http.StatusBadRequest, isJSON, `{"code":21211,"message":"Invalid 'To' Phone Number","status":400}`)
	srv := serve(t, refused, twilioQueued, 2)
	base := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(base.CloseIdleConnections)
	rt := transport.New(sendTo(srv.url, base), exactly(t, interval), transport.WithMaxInFlight(2))
	create := func(timeout time.Duration) error {
		client := &twilio.Client{
			Credentials: twilio.NewCredentials(twilioAccount, "token"),
			HTTPClient:  &http.Client{Transport: rt, Timeout: timeout},
		}
		client.SetAccountSid(twilioAccount)
		_, err := openapi.NewApiServiceWithClient(client).CreateMessage(
			(&openapi.CreateMessageParams{}).SetTo("+4670").SetFrom("+4671").SetBody("hi"))
		return err
	}
	require.Error(t, create(time.Hour))
	require.Error(t, create(time.Hour))
	require.NoError(t, create(time.Minute), "there is a place")
	arrivals, _ := srv.seen()
	require.Len(t, arrivals, 3)
}

// sendTo returns a transport that sends to another server what is meant for the partner.
func sendTo(server string, base http.RoundTripper) http.RoundTripper {
	to, err := url.Parse(server)
	if err != nil {
		panic(err)
	}
	if base == nil {
		base = http.DefaultTransport
	}
	return redirected{to, base}
}

type redirected struct {
	to   *url.URL
	base http.RoundTripper
}

func (r redirected) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Scheme, req.URL.Host, req.Host = r.to.Scheme, r.to.Host, ""
	return r.base.RoundTrip(req)
}
