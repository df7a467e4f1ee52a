package transport

import (
	"context"
	"net/http"
	"time"

	"github.com/sluice-go/sluice/transport/feedback"
	"github.com/sluice-go/sluice/transport/internal/engine"
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
	p.Finding, p.hearing = engine.Finding{}, nil
	resp := *answer
	if resp == nil || t.deaf {
		return
	}
	counts := feedback.Counts(resp.Header)
	if t.classify == nil && !counts && !feedback.MayRefuse(resp.StatusCode) {
		if !t.engine.Idle() { // most answers need not cost anything
			t.heed(p, feedback.Verdict{}, resp.StatusCode, time.Now())
		}
		return
	}
	if counts {
		t.learn(p, resp.Header)
	}
	received := time.Now()
	verdict, needsBody := t.judge(resp, received)
	if units, reset, ok := feedback.ReadRemaining(resp.Header, received, t.maxHold); ok && !verdict.Refused &&
		t.engine.Counted(&p.Call, engine.Answer{Status: resp.StatusCode, Received: received}, units, reset) {
		t.tell(p.trace, held, Event{Key: p.Key, Cost: p.Cost, Status: resp.StatusCode, Until: p.Until})
	}
	p.Verdict = verdict
	switch {
	case !needsBody:
		t.heed(p, verdict, resp.StatusCode, received)
	case (verdict.Refused || verdict.Spent) && verdict.Stated:
		t.heed(p, verdict, resp.StatusCode, received)
		*answer = t.hear(p, resp, received)
	default:
		if verdict.Refused {
			defer t.engine.Stop(p.Key)()
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

// heed has a key follow a verdict. An answer that only says that the partner has trouble is no
// success either.
func (t *Transport) heed(p *passage, v feedback.Verdict, status int, received time.Time) {
	served := status < http.StatusInternalServerError
	if t.engine.Answered(&p.Call, engine.Answer{Verdict: v, Status: status, Served: served, Received: received}) {
		t.tell(p.trace, held, Event{Key: p.Key, Cost: p.Cost, Status: status, Until: p.Until})
	}
}

// A hearing is about an answer whose body the classifier wants to see.
type hearing struct {
	body    *ahead
	finding engine.Finding // to be read once the body has been told
}

// hear has the body read, and heeded when it has come, on a goroutine: the caller gets
// the answer meanwhile.
func (t *Transport) hear(p *passage, resp *http.Response, received time.Time) *http.Response {
	h := &hearing{finding: p.Finding}
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
		h.finding = mine.Finding
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
	p.Finding, p.hearing = h.finding, nil
	return true
}
