package transport_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
)

// A client whose requests leave at 20 a second, from however many goroutines.
func Example() {
	partner := httptest.NewServer(http.NotFoundHandler())
	defer partner.Close()

	pace, err := shaper.New(scheduler.PerSecond(20))
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: transport.New(nil, pace)}

	begin := time.Now()
	for range 3 {
		resp, err := client.Get(partner.URL)
		if err != nil {
			log.Fatal(err)
		}
		resp.Body.Close()
	}
	fmt.Println("the third left after 90 ms or more:", time.Since(begin) >= 90*time.Millisecond)

	// Output:
	// the third left after 90 ms or more: true
}

// A request that cannot leave before its deadline is told so at once, with the wait
// that it would have needed.
func ExampleError() {
	partner := httptest.NewServer(http.NotFoundHandler())
	defer partner.Close()

	pace, err := shaper.New(scheduler.PerHour(1))
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: transport.New(nil, pace), Timeout: time.Minute}

	for range 2 {
		resp, err := client.Get(partner.URL)
		var notSent *transport.Error
		switch {
		case errors.As(err, &notSent):
			fmt.Println("not sent, come back in", notSent.Wait.Round(time.Minute))
		case err != nil:
			log.Fatal(err)
		default:
			fmt.Println(resp.Status)
			resp.Body.Close()
		}
	}

	// Output:
	// 404 Not Found
	// not sent, come back in 1h0m0s
}

// A partner that counts the segments of a text message, not the requests.
func ExampleContextWithCost() {
	partner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
	}))
	defer partner.Close()

	pace, err := shaper.New(scheduler.PerSecond(100))
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: transport.New(nil, pace)}

	for _, text := range []string{strings.Repeat("long ", 90), "short"} {
		segments := (int64(len(text)) + 152) / 153
		ctx := transport.ContextWithCost(context.Background(), segments)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, partner.URL, strings.NewReader(text))
		if err != nil {
			log.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			log.Fatal(err)
		}
		resp.Body.Close()
		fmt.Println(resp.Status, "and paid for", segments)
	}

	// Output:
	// 202 Accepted and paid for 3
	// 202 Accepted and paid for 1
}

// A pace for each partner's host. A partner that answers 429 holds its own line, and
// no other host's.
func ExampleNewKeyed() {
	partner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer partner.Close()

	hosts, err := shaper.NewGroup[string](scheduler.PerSecond(20))
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{
		Transport: transport.NewKeyed(nil, nil, hosts),
		Timeout:   10 * time.Second,
	}

	for range 2 {
		resp, err := client.Get(partner.URL)
		if refused := new(transport.Error); errors.As(err, &refused) {
			fmt.Println("not sent, held by a", refused.Status)
			continue
		} else if err != nil {
			log.Fatal(err)
		}
		resp.Body.Close()
		fmt.Println(resp.Status)
	}

	// Output:
	// 429 Too Many Requests
	// not sent, held by a 429
}
