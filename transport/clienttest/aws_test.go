package clienttest

import (
	"context"
	"log"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	"github.com/sluice-go/sluice/transport/feedback"
)

var snsPublished = answer(http.StatusOK, isXML,
	`<PublishResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishResult><MessageId>m-1</MessageId></PublishResult></PublishResponse>`)

// The clients of aws-sdk-go-v2 take an *http.Client in aws.Config. Message parts are what
// counts for SMS, so the cost of a call is that of its text.
func Example_aws() {
	url, stop := serving(snsPublished)
	defer stop()

	pace, err := shaper.New(scheduler.PerSecond(20))
	if err != nil {
		log.Fatal(err)
	}
	client := sns.NewFromConfig(aws.Config{
		Region:       "eu-north-1",
		Credentials:  credentials.NewStaticCredentialsProvider("AKID", "secret", ""),
		HTTPClient:   &http.Client{Transport: transport.New(nil, pace, transport.WithClassifier(feedback.AWS))},
		BaseEndpoint: aws.String(url), // leave out: that of the region
	})

	ctx := transport.ContextWithCost(context.Background(), 3) // a text of three parts
	published, err := client.Publish(ctx, &sns.PublishInput{PhoneNumber: aws.String("+4670"), Message: aws.String("hi")})
	if err != nil {
		log.Fatal(err)
	}
	report(*published.MessageId, err)

	// Output: m-1
}

func snsPlug(wrap func(http.RoundTripper) http.RoundTripper) plug {
	return func(_ *testing.T, url string, rt http.RoundTripper) func(context.Context) error {
		client := sns.NewFromConfig(aws.Config{
			Region:       "eu-north-1",
			Credentials:  credentials.NewStaticCredentialsProvider("AKID", "secret", ""),
			HTTPClient:   &http.Client{Transport: wrap(rt)},
			BaseEndpoint: aws.String(url),
			Retryer: func() aws.Retryer {
				return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = time.Millisecond })
			},
		})
		return func(ctx context.Context) error {
			_, err := client.Publish(ctx, &sns.PublishInput{PhoneNumber: aws.String("+4670"), Message: aws.String("hi")})
			return err
		}
	}
}

func asIs(rt http.RoundTripper) http.RoundTripper { return rt }

func hidden(rt http.RoundTripper) http.RoundTripper { return untyped{rt} }

func TestAWS(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		status int
		code   string
	}{
		{"a 400", http.StatusBadRequest, "ThrottlingException"},
		{"a 429", http.StatusTooManyRequests, "Throttled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			subject{
				// No setting is needed: the SDK asks the error, and would send three times
				// if the error did not say no.
				plug:     snsPlug(asIs),
				careless: snsPlug(hidden),
				attempts: 3,
				accept:   snsPublished,
				refuse: answer(c.status, isXML,
					`<ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><Error><Type>Sender</Type><Code>`+c.code+`</Code><Message>Rate exceeded</Message></Error></ErrorResponse>`),
				hidesCancel: true,
				classifier:  feedback.AWS,
				hold:        time.Second, // no time is stated: the first back-off
			}.check(t)
		})
	}
}
