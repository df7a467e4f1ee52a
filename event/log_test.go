package event_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/event"
)

type rate string

func (r rate) String() string { return string(r) }

// Each change of state is a line of its own; what is repeated is one in ten seconds, with how
// often it was.
func TestLog(t *testing.T) {
	var out bytes.Buffer
	plain := &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
	log := event.Log(slog.New(slog.NewTextHandler(&out, plain)))
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	full, late := errors.New("queue full"), errors.New("too late")
	for _, e := range []event.Event{
		{Kind: event.Held, Until: at.Add(time.Minute)},
		{Kind: event.Held, Until: at.Add(time.Hour), Key: "k"},
		{Kind: event.Paused}, {Kind: event.Resumed},
		{Kind: event.RateChanged, Rate: rate("5/s")},
		{Kind: event.Refused, Err: full}, {Kind: event.Refused, Err: full}, {Kind: event.Refused, Err: full},
		{Kind: event.PartnerRefused, Status: 429}, {Kind: event.PartnerRefused, Status: 429}, {Kind: event.PartnerRefused, Status: 503},
		{Kind: event.Retried, Status: 429}, {Kind: event.KeysFull},
		{Kind: event.StoreAway, Err: late}, {Kind: event.StoreBack}, {Kind: event.Closed},
		{Kind: event.Refused, Err: full, Time: at.Add(event.Quiet)},
		{Kind: event.Refused, Err: full, Time: at.Add(event.Quiet + 1)},
		{Kind: event.Refused, Err: full, Time: at.Add(2 * event.Quiet)},
	} {
		e.Of = "partner"
		if e.Time.IsZero() {
			e.Time = at
		}
		log(e)
	}
	assert.Equal(t, `level=INFO msg=held limit=partner until=2026-03-01T12:01:00.000Z
level=INFO msg=held limit=partner key=k until=2026-03-01T13:00:00.000Z
level=INFO msg=paused limit=partner
level=INFO msg=resumed limit=partner
level=INFO msg="rate changed" limit=partner rate=5/s
level=WARN msg=refused limit=partner reason="queue full"
level=WARN msg="partner refused" limit=partner status=429
level=WARN msg="partner refused" limit=partner status=503
level=DEBUG msg=retried limit=partner status=429
level=WARN msg="keys full" limit=partner
level=ERROR msg="store away" limit=partner reason="too late"
level=INFO msg="store back" limit=partner
level=INFO msg=closed limit=partner
level=WARN msg=refused limit=partner reason="queue full" repeated=2
level=WARN msg=refused limit=partner reason="queue full" repeated=1
`, out.String())
}

// The log remembers a bounded number of things that it has said.
func TestLogForgets(t *testing.T) {
	var out bytes.Buffer
	log := event.Log(slog.New(slog.NewTextHandler(&out, nil)))
	for round := range 2 {
		for i := range 10_000 {
			log(event.Event{Kind: event.Refused, Of: fmt.Sprint(i), Time: time.Unix(int64(round), 0)})
		}
	}
	assert.Greater(t, strings.Count(out.String(), "\n"), 19_000)
}

func TestKinds(t *testing.T) {
	for k := event.Held; k <= event.StoreBack; k++ {
		assert.NotContains(t, k.String(), "Kind")
	}
	assert.Equal(t, "Kind(0)", event.Kind(0).String())
	assert.Equal(t, "Kind(99)", event.Kind(99).String())
}
