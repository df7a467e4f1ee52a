package transport_test

import (
	"context"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/transport"
	"github.com/stretchr/testify/require"
)

// On every path each body of the request is closed exactly once, the answers that the
// caller does not get are closed, the request is as it was, and nothing is left running:
// a bubble does not end with a goroutine that blocks.
func TestEveryPath(t *testing.T) {
	for name, tc := range paths {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { walk(t, tc) })
		})
	}
}

func walk(t *testing.T, tc path) {
	w := &world{t: t, ctx: context.Background(), base: newPartner(), cleanup: func() {}}
	w.req, w.made = replayable(t, "a payment", "")
	w.req.Header.Set("Authorization", "Bearer hunter2")
	w.req.Trailer = http.Header{"X-Trailer": nil}
	tc.setup(w)
	defer func() { w.cleanup() }()
	w.shaper = newShaper(t, scheduler.PerSecond(10), w.pace...)
	var answers []*countedBody
	if scripted := w.base.answer; scripted != nil {
		w.base.answer = func(req *http.Request) (*http.Response, error) {
			resp, err := scripted(req)
			if resp != nil {
				b := &countedBody{Reader: strings.NewReader("an answer")}
				resp.Body, resp.ContentLength = b, -1
				answers = append(answers, b)
			}
			return resp, err
		}
	}
	var tr *transport.Transport
	switch {
	case w.group != nil:
		tr = transport.NewKeyed(w.base, w.key, w.group, w.opts...)
	case w.waiter != nil:
		tr = transport.New(w.base, w.waiter, w.opts...)
	default:
		tr = transport.New(w.base, w.shaper, w.opts...)
	}
	others := 0
	if w.before != nil {
		w.before(tr)
		others = len(w.base.seen())
		answers = nil
	}

	if w.after != nil {
		time.AfterFunc(time.Second, w.after)
	}

	req := w.req.WithContext(w.ctx)
	header, trailer := req.Header.Clone(), req.Trailer.Clone()
	shallow := *req
	var url any
	if req.URL != nil {
		u := *req.URL
		url = u
	}
	var resp *http.Response
	var err error
	returned := false
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		resp, err = tr.RoundTrip(req)
		returned = true
	}()
	<-done
	require.Equal(t, tc.panic, !returned)
	require.Len(t, w.base.seen(), others+tc.sent)
	closedOnce(t, w.made)
	if returned {
		require.True(t, (resp == nil) != (err == nil), "either an answer or an error")
	}
	if tc.sent == 0 && returned && w.ctx.Err() == nil {
		require.ErrorIs(t, err, transport.ErrNotSent)
	}
	if resp != nil {
		require.Same(t, req, resp.Request)
		rest, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		if answers != nil {
			require.Equal(t, "an answer", string(rest))
		}
		require.NoError(t, resp.Body.Close())
	}
	for i, b := range answers {
		require.NotZero(t, b.closed, "answer %d", i)
	}

	require.Equal(t, reflect.ValueOf(shallow.GetBody).Pointer(), reflect.ValueOf(req.GetBody).Pointer())
	now := *req
	now.GetBody, shallow.GetBody = nil, nil // functions are equal to nothing
	require.Equal(t, shallow, now)
	require.Equal(t, header, req.Header)
	require.Equal(t, trailer, req.Trailer)
	require.Equal(t, w.ctx, req.Context())
	if req.URL != nil {
		require.Equal(t, url, *req.URL)
	}
}
