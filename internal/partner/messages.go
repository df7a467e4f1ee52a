package partner

import (
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/sluice-go/sluice/internal/sms"
)

// messages is the endpoint that takes text messages.
type messages struct {
	gate *gate
	sent atomic.Int64
}

func newMessages(e Endpoint) *messages {
	return &messages{gate: newGate(e, RetryAfterSeconds)}
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
	arrived := m.gate.arrive()
	defer m.gate.depart()
	m.gate.stamp(w)

	msg, segments, bad := m.read(w, r)
	if bad != nil {
		m.gate.spoil()
		bad.write(w)
		return
	}
	if denied := m.gate.enter(arrived, m.gate.key.of(r, msg.From), int64(segments)); denied != nil {
		m.gate.refuse(w, r, denied)
		return
	}
	defer m.gate.leave()

	worked := m.gate.work(r.Context(), w)
	m.gate.stamp(w)
	if !worked {
		abandoned().write(w)
		return
	}
	writeJSON(w, http.StatusAccepted, messageAnswer{
		ID:       fmt.Sprintf("msg_%06d", m.sent.Add(1)),
		Status:   "queued",
		Segments: segments,
	})
}

// read returns the message that r brings and the number of its parts.
func (m *messages) read(w http.ResponseWriter, r *http.Request) (msg message, segments int, bad *problem) {
	if _, bad := readJSON(w, r, &msg); bad != nil {
		return msg, 0, bad
	}
	if msg.To == "" {
		return msg, 0, unprocessable("to is missing")
	}
	segments = sms.Segments(msg.Text)
	if largest := m.gate.largest(); int64(segments) > largest {
		return msg, 0, unprocessable(fmt.Sprintf("the text has %d parts; a message may have %d", segments, largest))
	}
	return msg, segments, nil
}
