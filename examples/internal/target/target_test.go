package target_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/examples/internal/target"
	"github.com/sluice-go/sluice/internal/partner"
)

func TestOpenStartsAPartner(t *testing.T) {
	url, stop, err := target.Open("", partner.Config{})
	require.NoError(t, err)
	resp, err := http.Get(url + "/_stats")
	require.NoError(t, err)
	resp.Body.Close()
	assert.Equal(t, http.StatusOK, resp.StatusCode)
	http.DefaultClient.CloseIdleConnections()
	stop()
	_, err = http.Get(url + "/_stats")
	assert.Error(t, err)
}

func TestOpenTakesAURL(t *testing.T) {
	for base, want := range map[string]string{
		"http://127.0.0.1:80":        "http://127.0.0.1:80",
		"https://sms.example/":       "https://sms.example",
		"https://sms.example/a/b//":  "https://sms.example/a/b",
		"https://u:p@sms.example/a/": "https://u:p@sms.example/a",
	} {
		url, stop, err := target.Open(base, partner.Config{})
		require.NoError(t, err)
		assert.Equal(t, want, url)
		stop()
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, base := range []string{
		"sms.example", "ftp://sms.example", "http://", "/v1", "http://u:secret@%zz", "http://x/?token=secret", "http://x/#a",
	} {
		_, _, err := target.Open(base, partner.Config{})
		require.Error(t, err, base)
		assert.NotContains(t, err.Error(), "secret")
	}
	_, _, err := target.Open("", partner.Config{Keys: -1})
	assert.Error(t, err)
}
