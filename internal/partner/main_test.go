package partner_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/internal/partner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newPartner(t *testing.T, c partner.Config) *partner.Partner {
	t.Helper()
	p, err := partner.New(c)
	require.NoError(t, err)
	return p
}

func newRequest(t *testing.T, method, path, body string) *http.Request {
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return r
}

func serve(p *partner.Partner, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

// send sends a message.
func send(t *testing.T, p *partner.Partner, text string) *httptest.ResponseRecorder {
	body, err := json.Marshal(map[string]string{"from": "sluice", "to": "+4915100000000", "text": text, "reference": "r"})
	require.NoError(t, err)
	return serve(p, newRequest(t, "POST", "/v1/messages", string(body)))
}

// pay charges a payment.
func pay(t *testing.T, p *partner.Partner, key, body string) *httptest.ResponseRecorder {
	r := newRequest(t, "POST", "/v1/payments", body)
	r.Header.Set("Idempotency-Key", key)
	return serve(p, r)
}

// assertProblem checks that the answer is a problem document with that status.
func assertProblem(t *testing.T, status int, w *httptest.ResponseRecorder) {
	t.Helper()
	assert.Equal(t, status, w.Code, w.Body)
	assert.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
	var p map[string]any
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p), w.Body)
	assert.Equal(t, float64(status), p["status"])
	assert.Equal(t, http.StatusText(status), p["title"])
	assert.Regexp(t, `^https://partner\.example/problems/[a-z-]+$`, p["type"])
	assert.NotEmpty(t, p["detail"])
	assert.Len(t, p, 4)
}
