package partner

import (
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/sluice-go/sluice/internal/sms"
)

// messages is the endpoint that takes text messages.
type messages struct {
	gate    *gate
	largest int64 // most parts of one message
	sent    atomic.Int64
}

func newMessages(e Endpoint) *messages {
	return &messages{gate: newGate(e), largest: e.Limit.largest()}
}

type message struct {
	From      string `json:"from"`
	To        string `json:"to"`
	Text      string `json:"text"`
	Reference string `json:"reference"`
}

type messageAnswer struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Segments int    `json:"segments"`
}

func (m *messages) create(w http.ResponseWriter, r *http.Request) {
	m.gate.arrive()
	defer m.gate.depart()

	segments, bad := m.read(w, r)
	if bad != nil {
		m.gate.spoil()
		bad.write(w)
		return
	}
	if refused := m.gate.enter(int64(segments)); refused != nil {
		w.Header().Set("Retry-After", delaySeconds(refused.wait))
		tooMany(refused).write(w)
		return
	}
	defer m.gate.leave()

	if !m.gate.work(r.Context()) {
		abandoned().write(w)
		return
	}
	writeJSON(w, http.StatusAccepted, messageAnswer{
		ID:       fmt.Sprintf("msg_%06d", m.sent.Add(1)),
		Status:   "queued",
		Segments: segments,
	})
}

// read returns the number of parts of the message that r brings.
func (m *messages) read(w http.ResponseWriter, r *http.Request) (segments int, bad *problem) {
	var msg message
	if _, bad := readJSON(w, r, &msg); bad != nil {
		return 0, bad
	}
	if msg.To == "" {
		return 0, unprocessable("to is missing")
	}
	segments = sms.Segments(msg.Text)
	if int64(segments) > m.largest {
		return 0, unprocessable(fmt.Sprintf("the text has %d parts; a message may have %d", segments, m.largest))
	}
	return segments, nil
}
