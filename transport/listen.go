package transport

import (
	"net/http"
	"time"

	"github.com/sluice-go/sluice/transport/feedback"
)

// listen reads what an answer says about the limit of its key, and has the key follow it.
func (t *Transport) listen(p *passage, resp *http.Response) {
	p.verdict = feedback.Verdict{}
	if resp == nil || t.deaf {
		return
	}
	classify := t.classify
	if classify == nil {
		if !maybeRefused(resp.StatusCode) {
			t.note(p, resp)
			return
		}
		classify = feedback.Default
	}
	received := time.Now()
	p.verdict = classify(feedback.NewAnswer(resp, received, t.maxHold)).Within(t.maxHold)
	if !p.verdict.Refused {
		t.note(p, resp)
		return
	}
	until, moved := t.refuse(p, resp.StatusCode, received)
	p.until = until
	if moved {
		t.tell(p.trace, held, Event{Key: p.key, Cost: p.cost, Status: resp.StatusCode, Until: until})
	}
}

// maybeRefused reports whether the default classifier has to look at an answer: most
// need not cost anything.
func maybeRefused(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusForbidden:
		return true
	}
	return false
}

// note is told of an answer that is no refusal. One that only says that the partner has
// trouble is no success either.
func (t *Transport) note(p *passage, resp *http.Response) {
	if !t.memory.empty() && resp.StatusCode < http.StatusInternalServerError {
		t.accept(p, time.Now())
	}
}
