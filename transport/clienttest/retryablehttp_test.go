package clienttest

import (
	"context"
	"errors"
	"log"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	"github.com/sluice-go/sluice/transport/feedback"
)

// go-retryablehttp has an HTTPClient. Its policy retries every failure to send four times,
// unless it is told that the refusal was local.
func Example_retryablehttp() {
	url, stop := partnerServer()
	defer stop()

	pace, err := shaper.New(scheduler.PerSecond(10))
	if err != nil {
		log.Fatal(err)
	}
	client := retryablehttp.NewClient()
	client.Logger = nil
	client.HTTPClient = &http.Client{Transport: transport.New(nil, pace)}
	client.CheckRetry = checkRetry

	resp, err := client.Post(url+"/v1/messages", "application/json", []byte(text))
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	report(resp.Status, err)

	// Output: 202 Accepted
}

// checkRetry leaves local refusals alone.
func checkRetry(ctx context.Context, resp *http.Response, err error) (bool, error) {
	if _, refused := errors.AsType[*transport.Error](err); refused {
		return false, err
	}
	return retryablehttp.DefaultRetryPolicy(ctx, resp, err)
}

func retryablePlug(check retryablehttp.CheckRetry, do func(*retryablehttp.Client, *http.Request) (*http.Response, error)) plug {
	return func(_ *testing.T, url string, rt http.RoundTripper) func(context.Context) error {
		client := retryablehttp.NewClient()
		client.Logger = nil
		client.HTTPClient = &http.Client{Transport: rt}
		client.CheckRetry = check
		client.RetryWaitMin, client.RetryWaitMax = time.Millisecond, time.Millisecond
		return func(ctx context.Context) error {
			// NewRequest of net/http knows how to repeat a body that it knows the type of.
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/messages", strings.NewReader(text))
			if err != nil {
				return err
			}
			req.Header.Set("Content-Type", isJSON)
			resp, err := do(client, req)
			if err != nil {
				return err
			}
			return resp.Body.Close()
		}
	}
}

// Its two ways to send a request.
func viaClient(c *retryablehttp.Client, req *http.Request) (*http.Response, error) {
	wrapped, err := retryablehttp.FromRequest(req)
	if err != nil {
		return nil, err
	}
	return c.Do(wrapped)
}

func viaStandard(c *retryablehttp.Client, req *http.Request) (*http.Response, error) {
	return c.StandardClient().Do(req)
}

func TestRetryableHTTP(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(*retryablehttp.Client, *http.Request) (*http.Response, error){
		"its client":          viaClient,
		"its standard client": viaStandard,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			subject{
				plug:       retryablePlug(checkRetry, do),
				careless:   retryablePlug(retryablehttp.DefaultRetryPolicy, do),
				attempts:   5,
				accept:     accepted,
				refuse:     answer(http.StatusTooManyRequests, isJSON, `{}`, "Retry-After", "1"),
				classifier: feedback.Default,
				hold:       time.Second,
			}.check(t)
		})
	}
}

// A payment that was answered with a redirect has left. That the request to where it leads is
// refused is no reason to pay again, and the check of the documentation says so; one that
// looks for ErrNotSent does not.
func TestRetryableHTTPBehindARedirect(t *testing.T) {
	t.Parallel()
	careless := func(ctx context.Context, resp *http.Response, err error) (bool, error) {
		if errors.Is(err, transport.ErrNotSent) {
			return false, err
		}
		return retryablehttp.DefaultRetryPolicy(ctx, resp, err)
	}
	for _, c := range []struct {
		check retryablehttp.CheckRetry
		asked int
	}{{checkRetry, 2}, {careless, 3}} {
		srv := serve(t, nil, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/receipt", http.StatusSeeOther)
		}, 0)
		w := &turns{shaper: exactly(t, time.Hour, shaper.WithMaxDelay(0))}
		err := retryablePlug(c.check, viaClient)(t, srv.url, transport.New(nil, w))(t.Context())
		var refused *transport.Error
		require.ErrorAs(t, err, &refused)
		require.EqualValues(t, c.asked, w.asked.Load())
		arrivals, _ := srv.seen()
		require.Len(t, arrivals, 1)
	}
}
