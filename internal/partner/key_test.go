package partner_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/partner"
)

// Each sender has the limit, the holds and a score of its own.
func TestLimitPerSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner(t, partner.Config{SMS: partner.Endpoint{
			Limit: partner.Limit{Units: 2, Window: time.Minute},
			Key:   partner.BySender,
		}})
		from := func(sender string) int {
			return serve(p, newRequest(t, "POST", "/v1/messages", fmt.Sprintf(`{"from":%q,"to":"1"}`, sender))).Code
		}
		for _, sender := range []string{"a", "b", "a", "b"} {
			assert.Equal(t, http.StatusAccepted, from(sender))
		}
		assert.Equal(t, http.StatusTooManyRequests, from("a"))
		assert.Equal(t, http.StatusTooManyRequests, from("a"))
		assert.Equal(t, http.StatusTooManyRequests, from("b"))
		assert.Equal(t, http.StatusAccepted, from("c"))

		assert.Equal(t, map[string]partner.Score{
			"a": {Accepted: 2, AcceptedUnits: 2, Refused: 2, CallsDuringHold: 1, WorstWindow: 2},
			"b": {Accepted: 2, AcceptedUnits: 2, Refused: 1, WorstWindow: 2},
			"c": {Accepted: 1, AcceptedUnits: 1, WorstWindow: 1},
		}, p.Stats().SMS.Keys)
		total := p.Stats().SMS
		total.Keys = nil
		assert.Equal(t, partner.Score{
			Accepted: 5, AcceptedUnits: 5, Refused: 3, CallsDuringHold: 1, WorstWindow: 5, HighestConcurrency: 1,
		}, total)

		require.NoError(t, p.SMS().SetLimit(partner.Limit{Units: 3, Window: time.Minute}))
		assert.Equal(t, http.StatusAccepted, from("a"))
		assert.Equal(t, http.StatusTooManyRequests, from("a"))
		assert.Equal(t, http.StatusAccepted, from("c"))
		assert.Equal(t, http.StatusAccepted, from("c"))
		assert.Equal(t, http.StatusTooManyRequests, from("c"))
	})
}

// The Host header tells the customers of both endpoints apart.
func TestLimitPerHost(t *testing.T) {
	p := newPartner(t, partner.Config{Payments: partner.Endpoint{
		Limit: partner.Limit{Units: 1, Window: time.Hour},
		Key:   partner.ByHost,
	}})
	url, _, client := start(t, p)
	for i, want := range []int{201, 201, 429, 429} {
		r := newPost(t, url+"/v1/payments", fmt.Sprint(i), invoice(i))
		r.Host = []string{"one.example", "two.example"}[i%2]
		res, err := client.Do(r)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		assert.Equal(t, want, res.StatusCode)
	}
	assert.EqualValues(t, 1, p.Stats().Payments.Keys["one.example"].Accepted)
	assert.EqualValues(t, 1, p.Stats().Payments.Keys["two.example"].Refused)
}

// However many customers come, and whatever they are called, memory stays bounded.
func TestCustomersAreBounded(t *testing.T) {
	p := newPartner(t, partner.Config{SMS: partner.Endpoint{Key: partner.ByHost}})
	from := func(host string) {
		r := newRequest(t, "POST", "/v1/messages", `{"to":"1"}`)
		r.Host = host
		serve(p, r)
	}
	from(strings.Repeat("x", 64))
	from(strings.Repeat("x", 65))
	assert.Contains(t, p.Stats().SMS.Keys, strings.Repeat("x", 64))
	assert.EqualValues(t, 1, p.Stats().SMS.Keys["(others)"].Accepted)
	for i := range 1500 {
		from(fmt.Sprint(i))
	}
	keys := p.Stats().SMS.Keys
	assert.Len(t, keys, 1000)
	assert.EqualValues(t, 503, keys["(others)"].Accepted+keys["(others)"].Refused)
}
