package clienttest

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/sluice-go/sluice/transport/feedback"
)

// The clients of the Azure SDK take an *http.Client as policy.ClientOptions.Transport.
// What they all have below is the pipeline that is tested here.
func azurePlug(wrap func(http.RoundTripper) http.RoundTripper) plug {
	return func(_ *testing.T, url string, rt http.RoundTripper) func(context.Context) error {
		pipeline := runtime.NewPipeline("clienttest", "v1.0.0", runtime.PipelineOptions{}, &policy.ClientOptions{
			Transport: &http.Client{Transport: wrap(rt)},
			Retry:     policy.RetryOptions{RetryDelay: time.Millisecond},
		})
		return func(ctx context.Context) error {
			req, err := runtime.NewRequest(ctx, http.MethodGet, url+"/messages")
			if err != nil {
				return err
			}
			resp, err := pipeline.Do(req)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return fmt.Errorf("status %d", resp.StatusCode)
			}
			return nil
		}
	}
}

func TestAzure(t *testing.T) {
	t.Parallel()
	subject{
		// No setting is needed, as with AWS: it asks the error.
		plug:        azurePlug(asIs),
		careless:    azurePlug(hidden),
		attempts:    4,
		accept:      answer(http.StatusOK, isJSON, `{}`),
		refuse:      answer(http.StatusTooManyRequests, isJSON, `{}`, "Retry-After-Ms", "500"),
		hidesCancel: true,
		classifier:  feedback.Default,
		hold:        500 * time.Millisecond,
	}.check(t)
}
