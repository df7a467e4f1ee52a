package feedback

import (
	"net/http"
	"strings"
	"time"
)

// An Answer is a response as a [Classifier] sees it: status and headers at no cost,
// and the start of the body without taking it from the caller. It is not safe for
// concurrent use.
type Answer struct {
	resp     *http.Response
	received time.Time
	max      time.Duration
	epoch    bool
	body     *peeker
}

// NewAnswer prepares resp for a Classifier. received is when its header arrived: the
// time to measure dates against if the response has no Date. max is the longest wait
// that is ever told; a negative one counts as 0.
//
// resp is left as it is, but for its Body once [Answer.Body] is called. So resp.Body
// is for the Classifier first and for the caller afterwards.
func NewAnswer(resp *http.Response, received time.Time, max time.Duration) *Answer {
	return &Answer{resp: resp, received: received, max: max, body: &peeker{resp: resp}}
}

// Status returns the status code.
func (a *Answer) Status() int { return a.resp.StatusCode }

// Header returns the response's own header. It must not be changed.
func (a *Answer) Header() http.Header { return a.resp.Header }

// Request returns the request that was answered, or nil if the response names none.
// Its body has been consumed. It must not be changed.
func (a *Answer) Request() *http.Request { return a.resp.Request }

// Body returns the start of the body: all of it, or its first [MaxPeek] bytes. What
// it returns must not be changed.
//
// It reads from the partner when it is called for the first time, and blocks until
// those bytes have arrived, the body has ended or the request's context has. The
// response's Body stays readable from its very start: the caller gets the same bytes
// and, after the same number of them, the same error. Close reaches the original body
// as often as it is called, whether everything was read or nothing.
//
// It returns nothing, and touches nothing, if there is no body or if the body is more
// than a body: after 101 Switching Protocols it is the connection.
func (a *Answer) Body() []byte { return a.body.peek() }

// Wait returns what the headers state, as [ReadHeaders] reads them. On a 429, which is
// about a limit for sure, a reset without a count of what remains is a stated time, too.
func (a *Answer) Wait() (wait time.Duration, capped, ok bool) {
	wait, capped, ok = readHeaders(a.resp.Header, a.received, a.max, a.epoch)
	if ok || wordOf(a.Status()) != limited {
		return wait, capped, ok
	}
	wait, ok = uncounted(a.resp.Header, serverTime(a.resp.Header, a.received))
	wait, capped = bound(wait, a.max)
	return wait, capped && ok, ok
}

// stated completes a verdict with a time that was found elsewhere than in the
// headers. What those say has been read before and stands.
func (a *Answer) stated(v Verdict, wait time.Duration) Verdict {
	if v.Stated {
		return v
	}
	v.Wait, v.Stated = wait, true
	return v.Within(a.max)
}

// atLeast completes a verdict with a time that the partner asks for whenever it states
// none.
func (a *Answer) atLeast(v Verdict, least time.Duration) Verdict {
	v.AtLeast = least
	return v.Within(a.max)
}

// isJSON reports whether the body says that it is one JSON document: application/json,
// or a type with the suffix +json. It guards a successful answer, which may be anything,
// down to a stream without end, from being waited for; so a stream of documents is none,
// and nor is what does not say what it is.
func (a *Answer) isJSON() bool {
	kind := a.resp.Header.Get("Content-Type")
	if len(kind) > maxField {
		return false
	}
	kind, _, _ = strings.Cut(kind, ";")
	kind = strings.ToLower(trim(kind))
	if kind == "application/json" {
		return true
	}
	name, ok := strings.CutSuffix(kind, "+json")
	return ok && !strings.HasSuffix(name, "stream")
}

// isGraphQL reports whether the request went to a GraphQL endpoint, where refusals
// come as a 200. If the request is not known, it may have.
func (a *Answer) isGraphQL() bool {
	req := a.resp.Request
	if req == nil || req.URL == nil {
		return true
	}
	path := req.URL.Path
	return strings.HasPrefix(path[strings.LastIndexByte(path, '/')+1:], "graphql")
}
