package clienttest

import (
	"context"
	"log"
	"net/http"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v85"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	"github.com/sluice-go/sluice/transport/feedback"
)

var stripeIntent = answer(http.StatusOK, isJSON, `{"id":"pi_1","object":"payment_intent","status":"succeeded"}`)

// stripe-go takes an *http.Client in its BackendConfig. MaxNetworkRetries is 2 unless it
// is set, and then counts for every failure to send.
func Example_stripe() {
	url, stop := serving(stripeIntent)
	defer stop()

	pace, err := shaper.New(scheduler.PerSecond(25))
	if err != nil {
		log.Fatal(err)
	}
	client := stripe.NewClient("sk_test_123", stripe.WithBackends(
		stripe.NewBackendsWithConfig(&stripe.BackendConfig{
			HTTPClient: &http.Client{
				Transport: transport.New(nil, pace, transport.WithClassifier(feedback.Stripe)),
			},
			MaxNetworkRetries: stripe.Int64(0),
			URL:               stripe.String(url), // leave out: Stripe's own
		})))

	intent, err := client.V1PaymentIntents.Retrieve(context.Background(), "pi_1", nil)
	if err != nil {
		log.Fatal(err)
	}
	report(string(intent.Status), err)

	// Output: succeeded
}

func TestStripe(t *testing.T) {
	t.Parallel()
	with := func(retries *int64) plug {
		return func(t *testing.T, url string, rt http.RoundTripper) func(context.Context) error {
			backend := stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
				HTTPClient:        &http.Client{Transport: rt},
				MaxNetworkRetries: retries,
				URL:               &url,
				LeveledLogger:     &stripe.LeveledLogger{Level: stripe.LevelNull},
			})
			backend.(*stripe.BackendImplementation).SetNetworkRetriesSleep(false)
			client := stripe.NewClient("sk_test_123", stripe.WithBackends(&stripe.Backends{API: backend}))
			return func(ctx context.Context) error {
				_, err := client.V1PaymentIntents.Create(ctx, &stripe.PaymentIntentCreateParams{
					Amount:   stripe.Int64(100),
					Currency: stripe.String("eur"),
				})
				return err
			}
		}
	}
	subject{
		plug:     with(stripe.Int64(0)),
		careless: with(nil),
		attempts: 3,
		accept:   stripeIntent,
		refuse: answer(http.StatusTooManyRequests, isJSON, `{"error":{"code":"rate_limit","type":"invalid_request_error","message":"Request rate limit exceeded."}}`,
			"Stripe-Rate-Limited-Reason", "endpoint-rate"),
		classifier: feedback.Stripe,
		hold:       time.Second, // no time is stated: the first back-off
	}.check(t)
}
