package partner

import (
	"encoding/json"
	"net/http"
)

// A problem is the answer to a request that gets no other, as of RFC 9457. Its
// detail is the partner's own text: nothing from the request goes into it.
type problem struct {
	status int
	kind   string // last element of the type URI
	detail string
}

const problemType = "application/problem+json"

func (p problem) write(w http.ResponseWriter) {
	writeBody(w, p.status, problemType, p.marshal())
}

func (p problem) marshal() []byte {
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
	return body
}

// abandoned is the answer to a call whose context ended during processing. Only
// a caller of the handler itself, or one whose partner stops, gets to see it.
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

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // only our own plain structs come here
	}
	writeBody(w, status, "application/json", body)
}

// writeBody does not look at the error of Write: a caller that has gone
// cannot be told.
func writeBody(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
