package partner

import (
	"encoding/json"
	"net/http"
	"time"
)

// A Refusal is the status and the body with which a call is refused. Whatever it
// is, nothing of the call was processed.
type Refusal string

// The refusals. All but InsideOK are problem documents.
const (
	TooMany     Refusal = "429" // the usual one
	Unavailable Refusal = "503"
	Forbidden   Refusal = "403"
	ServerError Refusal = "500" // only its detail tells it from a real failure
	QueueFull   Refusal = "400" // a problem of the kind queue-full

	// InsideOK is 200 and a JSON object whose status is "1" and whose wait_ms
	// tells how long to wait, in milliseconds, if that is known. That counts as a
	// time that was stated. The Hint is in its header as in that of any refusal.
	InsideOK Refusal = "200"
)

// Refusals returns all refusals.
func Refusals() []Refusal {
	return []Refusal{TooMany, Unavailable, Forbidden, ServerError, QueueFull, InsideOK}
}

var refusals = map[Refusal]problem{
	TooMany:     {status: http.StatusTooManyRequests, kind: "too-many-requests"},
	Unavailable: {status: http.StatusServiceUnavailable, kind: "unavailable"},
	Forbidden:   {status: http.StatusForbidden, kind: "forbidden"},
	ServerError: {status: http.StatusInternalServerError, kind: "internal"},
	QueueFull:   {status: http.StatusBadRequest, kind: "queue-full"},
	InsideOK:    {status: http.StatusOK},
}

// An answer is a refusal that is ready to be written.
type answer struct {
	status      int
	contentType string
	bytes       []byte
	stated      time.Duration // how long its body tells the caller to wait
}

func (r Refusal) answer(d *denial) answer {
	if r == "" {
		r = TooMany
	}
	p := refusals[r]
	p.detail = d.detail
	if r != InsideOK {
		return answer{status: p.status, contentType: problemType, bytes: p.marshal()}
	}
	wait := ceil(d.wait, time.Millisecond)
	body, err := json.Marshal(struct {
		Status string `json:"status"`
		Detail string `json:"detail"`
		WaitMs int64  `json:"wait_ms,omitempty"`
	}{"1", d.detail, wait})
	if err != nil {
		panic(err) // strings and a number can be marshalled
	}
	return answer{p.status, "application/json", body, times(wait, time.Millisecond)}
}
