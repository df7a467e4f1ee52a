package partner

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// A problem is the answer to a request that gets no other, as of RFC 9457. Its
// detail is the partner's own text: nothing from the request goes into it.
type problem struct {
	status int
	kind   string // last element of the type URI
	detail string
}

func (p problem) write(w http.ResponseWriter) {
	body, err := json.Marshal(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{
		Type:   "https://partner.example/problems/" + p.kind,
		Title:  http.StatusText(p.status),
		Status: p.status,
		Detail: p.detail,
	})
	if err != nil {
		panic(err) // strings and a number can be marshalled
	}
	writeBody(w, p.status, "application/problem+json", body)
}

// tooMany is the answer to a refused call.
func tooMany(r *refusal) problem {
	return problem{status: http.StatusTooManyRequests, kind: "too-many-requests", detail: r.detail}
}

// abandoned is the answer to a call whose context ended during processing. Only
// somebody who calls the handler directly, or whose partner stops, gets to see it.
func abandoned() problem {
	return problem{
		status: http.StatusServiceUnavailable,
		kind:   "abandoned",
		detail: "the request ended before it was processed: nothing was done",
	}
}

func methodNotAllowed(w http.ResponseWriter, allow string) {
	w.Header().Set("Allow", allow)
	problem{
		status: http.StatusMethodNotAllowed,
		kind:   "method-not-allowed",
		detail: "this path takes " + allow,
	}.write(w)
}

// delaySeconds is wait as a Retry-After: in whole seconds that are never too few,
// and at least 1, because 0 would invite the caller to try in a loop.
func delaySeconds(wait time.Duration) string {
	seconds := wait / time.Second
	if wait%time.Second > 0 || seconds == 0 {
		seconds++
	}
	return strconv.FormatInt(int64(seconds), 10)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // only our own plain structs come here
	}
	writeBody(w, status, "application/json", body)
}

// writeBody does not look at the error of Write: if the caller has gone, there is
// nobody to tell.
func writeBody(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
