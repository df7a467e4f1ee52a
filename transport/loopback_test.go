package transport_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	loopback "github.com/sluice-go/sluice/internal/partner"
	"github.com/stretchr/testify/require"
)

// remote is the partner of package internal/partner, on loopback.
type remote struct {
	*loopback.Partner
	url string
}

func startPartner(t *testing.T, c loopback.Config) remote {
	t.Helper()
	p, err := loopback.New(c)
	require.NoError(t, err)
	url, stop, err := p.Start()
	require.NoError(t, err)
	t.Cleanup(stop)
	return remote{p, url}
}

// message is a POST of a text message, which net/http resends by itself if it has a key.
func (r remote) message(t *testing.T, ctx context.Context, from, key string) *http.Request {
	t.Helper()
	body := `{"from":"` + from + `","to":"+4915100000000","text":"hi","reference":"r"}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/v1/messages", strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	return req
}
