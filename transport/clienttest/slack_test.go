package clienttest

import (
	"context"
	"io"
	"log"
	"net/http"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	"github.com/sluice-go/sluice/transport/feedback"
)

var slackPosted = answer(http.StatusOK, isJSON, `{"ok":true,"channel":"C1","ts":"1.2"}`)

// slack-go takes an *http.Client. It retries nothing by default.
func Example_slack() {
	url, stop := serving(slackPosted)
	defer stop()

	pace, err := shaper.New(scheduler.PerSecond(1)) // per channel
	if err != nil {
		log.Fatal(err)
	}
	client := slack.New("xoxb-1",
		slack.OptionHTTPClient(&http.Client{Transport: transport.New(nil, pace)}),
		slack.OptionAPIURL(url+"/"), // leave out: Slack's own
	)

	channel, _, err := client.PostMessageContext(context.Background(), "C1", slack.MsgOptionText("hi", false))
	if err != nil {
		log.Fatal(err)
	}
	report(channel, err)

	// Output: C1
}

func slackPlug(opts ...slack.Option) plug {
	return func(_ *testing.T, url string, rt http.RoundTripper) func(context.Context) error {
		client := slack.New("xoxb-1", append([]slack.Option{
			slack.OptionHTTPClient(&http.Client{Transport: rt}),
			slack.OptionAPIURL(url + "/"),
			slack.OptionLog(log.New(io.Discard, "", 0)),
		}, opts...)...)
		return func(ctx context.Context) error {
			_, _, err := client.PostMessageContext(ctx, "C1", slack.MsgOptionText("hi", false))
			return err
		}
	}
}

func slackSubject(p plug) subject {
	return subject{
		plug:       p,
		accept:     slackPosted,
		refuse:     answer(http.StatusTooManyRequests, isJSON, `{"ok":false,"error":"ratelimited"}`, "Retry-After", "1"),
		classifier: feedback.Default,
		hold:       time.Second,
	}
}

func TestSlack(t *testing.T) {
	t.Parallel()
	slackSubject(slackPlug()).check(t)
}

// Its retries, if they are asked for, are none of a local refusal: they look for the text
// of a broken connection.
func TestSlackRetrying(t *testing.T) {
	t.Parallel()
	config := slack.DefaultRetryConfig()
	config.RetryAfterJitter = time.Millisecond
	config.Handlers = slack.AllBuiltinRetryHandlers(config)
	slackSubject(slackPlug(slack.OptionRetryConfig(config))).check(t)
}

// The error of a refusal that comes from Slack is the library's own.
func TestSlackRefusal(t *testing.T) {
	t.Parallel()
	s := slackSubject(slackPlug())
	srv := serve(t, s.refuse, s.accept, 1)
	var limited *slack.RateLimitedError
	require.ErrorAs(t, s.through(t, srv, exactly(t, interval))(t.Context()), &limited)
	require.Equal(t, time.Second, limited.RetryAfter)
}
