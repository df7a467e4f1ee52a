package feedback_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/sluice-go/sluice/transport/feedback"
)

// Each partner of one client is read by its own rules.
func ExampleByHost() {
	classify := feedback.ByHost(map[string]feedback.Classifier{
		"rest.nexmo.com": feedback.Vonage,
		"api.stripe.com": feedback.Stripe,
	})

	const body = `{"messages":[{"status":"1","error-text":"Throughput Rate Exceeded - please wait [ 978 ] and retry"}]}`
	resp := to("https://rest.nexmo.com/sms/json", respond(http.StatusOK, body, "Content-Type: application/json"))
	v := classify(feedback.NewAnswer(resp, time.Now(), time.Hour))
	rest, _ := io.ReadAll(resp.Body)

	fmt.Println(v.Refused, v.Wait, v.Unprocessed)
	fmt.Println(string(rest) == body)
	// Output:
	// true 978ms true
	// true
}

// A rule of one's own stands in front of the default one.
func ExampleAny() {
	queueFull := func(a *feedback.Answer) feedback.Verdict {
		if a.Status() == http.StatusBadRequest && bytes.Contains(a.Body(), []byte("queue full")) {
			return feedback.Verdict{Refused: true, Unprocessed: true} // when to come back is not said
		}
		return feedback.Verdict{}
	}
	classify := feedback.Any(queueFull, feedback.Default)

	for _, resp := range []*http.Response{
		respond(http.StatusBadRequest, `{"code":"queue full"}`),
		respond(http.StatusBadRequest, `{"code":"no such number"}`),
		respond(http.StatusTooManyRequests, ``, "Retry-After: 2.5"),
	} {
		v := classify(feedback.NewAnswer(resp, time.Now(), time.Hour))
		fmt.Println(v.Refused, v.Stated, v.Wait)
	}
	// Output:
	// true false 0s
	// false false 0s
	// true true 2.5s
}
