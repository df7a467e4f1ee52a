package partner_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/partner"
)

// Each refusal looks like its kind to net/http's client, at both endpoints, and
// nothing is processed.
func TestRefusals(t *testing.T) {
	problem := func(status, kind, title string) string {
		return `{"type":"https://partner.example/problems/` + kind + `","title":"` + title +
			`","status":` + status + `,"detail":"not now"}`
	}
	want := map[partner.Refusal]struct {
		status int
		body   string
	}{
		partner.TooMany:     {429, problem("429", "too-many-requests", "Too Many Requests")},
		partner.Unavailable: {503, problem("503", "unavailable", "Service Unavailable")},
		partner.Forbidden:   {403, problem("403", "forbidden", "Forbidden")},
		partner.ServerError: {500, problem("500", "internal", "Internal Server Error")},
		partner.QueueFull:   {400, problem("400", "queue-full", "Bad Request")},
		partner.InsideOK:    {200, `{"status":"1","detail":"not now","wait_ms":978}`},
	}
	require.Len(t, want, len(partner.Refusals()))

	p := newPartner(t, partner.Config{})
	url, _, client := start(t, p)
	for _, refusal := range partner.Refusals() {
		for path, control := range map[string]partner.Control{"/v1/messages": p.SMS(), "/v1/payments": p.Payments()} {
			require.NoError(t, control.Misbehave(partner.Mood{Hint: partner.NoHint, Refusal: refusal}))
			control.Refuse(1, 978*time.Millisecond)
			res, err := client.Do(newPost(t, url+path, "key", `{"to":"1","amount":1,"currency":"EUR"}`))
			require.NoError(t, err)
			body, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			assert.Equal(t, want[refusal].status, res.StatusCode)
			assert.JSONEq(t, want[refusal].body, string(body))
			if refusal == partner.InsideOK {
				assert.Equal(t, "application/json", res.Header.Get("Content-Type"))
			} else {
				assert.Equal(t, "application/problem+json", res.Header.Get("Content-Type"))
			}
			assert.Empty(t, ofHint(res.Header))
		}
	}
	s := p.Stats()
	refused := int64(len(want))
	assert.Equal(t, refused, s.SMS.Refused)
	assert.Equal(t, refused, s.Payments.Refused)
	assert.Zero(t, s.SMS.Accepted)
	assert.Zero(t, s.Payments.Charges)
	assert.Equal(t, 2*refused, s.Wire.Requests)
	assert.EqualValues(t, 1, s.Wire.Connections, "a refusal keeps the connection")
}

// A time in a body counts as stated; without one there is no wait_ms and no hold.
func TestRefusalInsideOKStatesATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner(t, partner.Config{SMS: partner.Endpoint{
			Misbehave: partner.Mood{Refusal: partner.InsideOK, Hint: partner.NoHint},
		}})
		p.SMS().Refuse(1, 978*time.Millisecond)
		send(t, p, "a")
		time.Sleep(978*time.Millisecond - 1)
		send(t, p, "a")
		time.Sleep(time.Nanosecond)
		send(t, p, "a")
		assert.EqualValues(t, 1, p.Stats().SMS.CallsDuringHold)

		p.SMS().Refuse(1, 0)
		assert.JSONEq(t, `{"status":"1","detail":"not now"}`, send(t, p, "a").Body.String())
		send(t, p, "a")
		assert.EqualValues(t, 1, p.Stats().SMS.CallsDuringHold)
	})
}

// Header and Pad do what no other field has a word for: a long refusal that closes its
// connection and says that much is left.
func TestRefusalHeaderAndPad(t *testing.T) {
	header := http.Header{"Connection": {"close"}, "x-ratelimit-remaining": {"4114"}, "Retry-After": {"60"}}
	p := newPartner(t, partner.Config{})
	require.NoError(t, p.SMS().Misbehave(partner.Mood{Refusal: partner.Forbidden, Header: header, Pad: 32 << 10}))
	header.Set("Retry-After", "changed later")
	url, _, client := start(t, p)
	p.SMS().Refuse(1, time.Second)
	res, err := client.Do(newPost(t, url+"/v1/messages", "", `{"to":"1"}`))
	require.NoError(t, err)
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	assert.Equal(t, http.StatusForbidden, res.StatusCode)
	assert.True(t, res.Close)
	assert.Equal(t, map[string]string{"Retry-After": "60", "X-Ratelimit-Remaining": "4114"}, ofHint(res.Header))
	assert.Len(t, body, len(strings.TrimSpace(string(body)))+32<<10)

	status, err := call(t.Context(), client, url+"/v1/messages", "", `{"to":"1"}`)
	require.NoError(t, err)
	assert.Equal(t, http.StatusAccepted, status)
	assert.EqualValues(t, 2, p.Stats().Wire.Connections)
}
