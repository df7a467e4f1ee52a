package feedback_test

import (
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/sluice-go/sluice/transport/feedback"
)

const hour = time.Hour

// now is when every response of the tests is received: 2023-11-14 22:13:20 UTC.
var now = time.Unix(1_700_000_000, 0)

// header makes a header of "Name: value" lines.
func header(lines ...string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return h
}

// respond makes a response without a Request.
func respond(status int, body string, lines ...string) *http.Response {
	return &http.Response{
		StatusCode:    status,
		Header:        header(lines...),
		Body:          io.NopCloser(strings.NewReader(body)),
		ContentLength: -1,
	}
}

// to gives a response the request that it answers.
func to(url string, resp *http.Response) *http.Response {
	req, err := http.NewRequest(http.MethodPost, url, nil)
	if err != nil {
		panic(err)
	}
	resp.Request = req
	return resp
}

func answer(resp *http.Response) *feedback.Answer { return feedback.NewAnswer(resp, now, hour) }

// The verdicts that the tables expect.

var notRefused = feedback.Verdict{}

func refused(options ...func(*feedback.Verdict)) feedback.Verdict {
	v := feedback.Verdict{Refused: true}
	for _, option := range options {
		option(&v)
	}
	return v
}

func wait(d time.Duration) func(*feedback.Verdict) {
	return func(v *feedback.Verdict) { v.Wait, v.Stated = d, true }
}

func atLeast(d time.Duration) func(*feedback.Verdict) {
	return func(v *feedback.Verdict) { v.AtLeast = d }
}

func trouble(v *feedback.Verdict) { v.Trouble = true }

func final(v *feedback.Verdict) { v.Final = true }

func capped(v *feedback.Verdict) { v.Wait, v.Stated, v.Capped = hour, true, true }

func unprocessed(v *feedback.Verdict) { v.Unprocessed = true }

func ofAccount(v *feedback.Verdict) { v.Account = true }

// spent is the verdict on an answer after which nothing remains for so long.
func spent(d time.Duration) feedback.Verdict {
	return feedback.Verdict{Spent: true, Stated: true, Wait: d}
}
