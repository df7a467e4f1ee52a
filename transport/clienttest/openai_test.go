package clienttest

import (
	"context"
	"log"
	"net/http"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	"github.com/sluice-go/sluice/transport/feedback"
)

var openaiModel = answer(http.StatusOK, isJSON, `{"id":"m-1","object":"model","created":1,"owned_by":"system"}`)

// openai-go takes an *http.Client. WithMaxRetries is 2 unless it is given, and then counts
// for every failure to send.
func Example_openai() {
	url, stop := serving(openaiModel)
	defer stop()

	pace, err := shaper.New(scheduler.PerMinute(500))
	if err != nil {
		log.Fatal(err)
	}
	client := openai.NewClient(
		option.WithAPIKey("sk-1"),
		option.WithHTTPClient(&http.Client{
			Transport: transport.New(nil, pace, transport.WithClassifier(feedback.OpenAI)),
		}),
		option.WithMaxRetries(0),
		option.WithBaseURL(url), // leave out: OpenAI's own
	)

	model, err := client.Models.Get(context.Background(), "m-1")
	if err != nil {
		log.Fatal(err)
	}
	report(model.ID, err)

	// Output: m-1
}

func TestOpenAI(t *testing.T) {
	t.Parallel()
	with := func(opts ...option.RequestOption) plug {
		return func(_ *testing.T, url string, rt http.RoundTripper) func(context.Context) error {
			client := openai.NewClient(append([]option.RequestOption{
				option.WithAPIKey("sk-1"),
				option.WithHTTPClient(&http.Client{Transport: rt}),
				option.WithBaseURL(url),
			}, opts...)...)
			return func(ctx context.Context) error {
				_, err := client.Models.Get(ctx, "m-1")
				return err
			}
		}
	}
	subject{
		plug:     with(option.WithMaxRetries(0)),
		careless: with(),
		attempts: 3,
		accept:   openaiModel,
		refuse: answer(http.StatusTooManyRequests, isJSON,
			`{"error":{"type":"requests","code":"rate_limit_exceeded","message":"Rate limit reached. Please try again in 400ms."}}`),
		classifier:  feedback.OpenAI,
		hold:        400 * time.Millisecond,
		hidesCancel: true,
	}.check(t)
}
