package transport

import (
	"context"
	"net/http"
	"time"

	"github.com/sluice-go/sluice/transport/feedback"
)

// What a classifier wants to see of a body has to come from the partner. Nothing waits for
// it for long.
const (
	// bodyGrace is how long an answer waits for the body that tells what it is. As a rule the
	// body comes with the header.
	bodyGrace = 50 * time.Millisecond
	// bodyWithin is how long a body is read for a classifier. What it says later is old.
	bodyWithin = 10 * time.Second
)

// listen reads what an answer says about the limit of its key, and has the key follow it:
// what the headers say at once, and what the body says when it has come. It may replace the
// answer.
func (t *Transport) listen(ctx context.Context, p *passage, answer **http.Response) {
	p.finding, p.hearing = finding{}, nil
	resp := *answer
	if resp == nil || t.deaf {
		return
	}
	if t.classify == nil && !feedback.MayRefuse(resp.StatusCode) {
		t.note(p, resp.StatusCode) // most answers need not cost anything
		return
	}
	received := time.Now()
	verdict, needsBody := t.judge(resp, received)
	p.verdict = verdict
	switch {
	case !needsBody:
		t.heed(p, verdict, resp.StatusCode, received)
	case verdict.Refused && verdict.Stated:
		t.heed(p, verdict, resp.StatusCode, received)
		*answer = t.hear(p, resp, received)
	default:
		if verdict.Refused {
			defer t.stop(p.key)()
		}
		*answer = t.hear(p, resp, received)
		if !p.heard(ctx, bodyGrace) && verdict.Refused {
			t.heed(p, verdict, resp.StatusCode, received)
		}
	}
}

// judge asks the classifier about what there is without the body, and reports whether it
// wanted to see that as well.
func (t *Transport) judge(resp *http.Response, received time.Time) (v feedback.Verdict, needsBody bool) {
	classify := t.classify
	if classify == nil {
		classify = feedback.Default
	}
	var none unread
	if t.classify != nil && canReadAhead(resp) {
		body := resp.Body
		resp.Body = &none
		defer func() { resp.Body = body }()
	}
	v = classify(feedback.NewAnswer(resp, received, t.maxHold)).Within(t.maxHold)
	return v, none.asked
}

// heed has a key follow a verdict.
func (t *Transport) heed(p *passage, v feedback.Verdict, status int, received time.Time) {
	p.verdict = v
	if !v.Refused {
		t.note(p, status)
		return
	}
	until, moved := t.refuse(p, status, received)
	p.until = until
	if moved {
		t.tell(p.trace, held, Event{Key: p.key, Cost: p.cost, Status: status, Until: until})
	}
}

// note is told of an answer that is no refusal. One that only says that the partner has
// trouble is no success either.
func (t *Transport) note(p *passage, status int) {
	if !t.memory.empty() && status < http.StatusInternalServerError {
		t.accept(p, time.Now())
	}
}

// A finding is what an answer means for its key.
type finding struct {
	verdict feedback.Verdict
	until   time.Time // the end of the hold of the key, if that is a refusal
	alone   bool      // that refusal holds no other request
}

// A hearing is about an answer whose body the classifier wants to see.
type hearing struct {
	body    *ahead
	finding finding // to be read once the body has been told
}

// hear has the body read, and heeded when it has come, on a goroutine: the caller gets
// the answer meanwhile.
func (t *Transport) hear(p *passage, resp *http.Response, received time.Time) *http.Response {
	h := &hearing{finding: p.finding}
	mine, then := *p, *resp
	then.Header = resp.Header.Clone() // the caller may change its own
	if resp.Request != nil {
		then.Request = resp.Request.Clone(resp.Request.Context()) // and use that again once the body is closed
	}
	resp, h.body = readAhead(resp, feedback.MaxPeek, received.Add(bodyWithin), func(start []byte, _ error) {
		if time.Since(received) > bodyWithin {
			return
		}
		v := t.classify(feedback.NewAnswer(inMemory(then, start), received, t.maxHold)).Within(t.maxHold)
		t.heed(&mine, v, then.StatusCode, received)
		h.finding = mine.finding
	})
	p.hearing = h
	return resp
}

// heard waits for what the body says, and reports whether that is known.
func (p *passage) heard(ctx context.Context, most time.Duration) bool {
	h := p.hearing
	if h == nil {
		return true
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-h.body.told:
	case <-timer.C:
		return false
	case <-ctx.Done():
		return false
	}
	h.body.rethrow()
	p.finding, p.hearing = h.finding, nil
	return true
}
