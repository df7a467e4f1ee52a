package transport_test

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	loopback "github.com/sluice-go/sluice/internal/partner"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/transport"
	"github.com/stretchr/testify/require"
)

// onWire serves a partner by HTTP/1 or HTTP/2 and returns a base that reaches it.
func onWire(t *testing.T, http2 bool) (remote, *http.Transport) {
	t.Helper()
	base := &http.Transport{Protocols: new(http.Protocols)}
	t.Cleanup(base.CloseIdleConnections)
	config := loopback.Config{SMS: loopback.Endpoint{Limit: loopback.Limit{Units: 1 << 20, Window: time.Second}}}
	if !http2 {
		base.Protocols.SetHTTP1(true)
		return startPartner(t, config), base
	}
	base.Protocols.SetUnencryptedHTTP2(true)
	p := must(loopback.New(config))
	url, stop, err := p.StartHTTP2()
	require.NoError(t, err)
	t.Cleanup(stop)
	return remote{p, url}, base
}

// drain reads an answer to its end, so that its connection is kept.
func drain(resp *http.Response) {
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}

// Whatever fails below the Transport and is sent again there, the partner and the Shaper
// count the same requests, whether the base says that it is net/http or hides it.
func TestCountOnTheWireIsTheChargedOne(t *testing.T) {
	for name, wrap := range map[string]func(http.RoundTripper) http.RoundTripper{
		"net/http":          func(b http.RoundTripper) http.RoundTripper { return b },
		"a wrapper":         func(b http.RoundTripper) http.RoundTripper { return tracing{b} },
		"an unknown base":   func(b http.RoundTripper) http.RoundTripper { return opaque{b} },
		"another Transport": func(b http.RoundTripper) http.RoundTripper { return transport.New(b, ready) },
	} {
		for _, tc := range []struct {
			kind  loopback.Break
			http2 bool
			key   string
			fails bool
		}{
			{loopback.IdleClose, false, "k", false},
			{loopback.IdleClose, false, "", true},
			{loopback.HangUp, false, "", true},
			{loopback.HangUp, true, "", true},
			{loopback.GoAway, true, "", false},
			{loopback.RefuseStream, true, "", false},
		} {
			t.Run(fmt.Sprintf("%s/%s, key %q, HTTP/2 %v", name, tc.kind, tc.key, tc.http2), func(t *testing.T) {
				p, base := onWire(t, tc.http2)
				s := newShaper(t, scheduler.PerSecond(100_000))
				var log eventLog
				tr := transport.New(wrap(base), s, transport.WithHooks(&transport.Trace{ExtraAttempt: log.add("extra")}))
				client := &http.Client{Transport: tr}
				send := func() error {
					resp, err := client.Do(p.message(t, t.Context(), "a", tc.key))
					if err == nil {
						drain(resp)
					}
					return err
				}
				const rounds = 3
				for range rounds {
					require.NoError(t, send())
					require.NoError(t, p.Break(tc.kind, 1))
					require.Equal(t, tc.fails, send() != nil)
					require.NoError(t, p.Break(tc.kind, 0))
				}
				st := p.Stats().Wire
				want := int64(2 * rounds)
				if !tc.fails {
					want = 3 * rounds
				}
				require.Equal(t, want, st.Requests)
				require.Equal(t, st.Requests, s.Stats().Left)
				extra := log.take()
				require.Len(t, extra, int(want-2*rounds))
				for _, e := range extra {
					require.Equal(t, transport.Event{Cost: 1}, e.Event)
				}
			})
		}
	}
}

// A GOAWAY disowns all that is on its way, and each of many is counted again. What was
// written, or was about to be, when the connection went away never got to the partner:
// rather is too much charged than too little.
func TestManyResendsAreCharged(t *testing.T) {
	p, base := onWire(t, true)
	s := newShaper(t, scheduler.PerSecond(100_000))
	client := &http.Client{Transport: transport.New(opaque{base}, s)}
	require.NoError(t, p.Break(loopback.GoAway, 3))
	const callers, calls = 8, 5
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range calls {
				if resp, err := client.Do(p.message(t, t.Context(), "a", "")); err == nil {
					drain(resp)
				}
			}
		})
	}
	wg.Wait()
	require.Greater(t, s.Stats().Left, int64(callers*calls))
	require.GreaterOrEqual(t, s.Stats().Left, p.Stats().Wire.Requests)
}

// A resend that net/http makes uses the limit up: the next request waits for it, too.
func TestChargedResendMovesTheNextBack(t *testing.T) {
	p, base := onWire(t, false)
	g := newGroup(t, scheduler.Every(30*time.Millisecond))
	client := &http.Client{Transport: transport.NewKeyed(base, nil, g)}
	var at []time.Time
	send := func() {
		resp, err := client.Do(p.message(t, t.Context(), "a", "k"))
		require.NoError(t, err)
		drain(resp)
		at = append(at, time.Now())
	}
	began := time.Now()
	send()
	require.NoError(t, p.Break(loopback.IdleClose, 1))
	send() // and once more below
	send()
	require.EqualValues(t, 4, p.Stats().Wire.Requests)
	require.EqualValues(t, 4, g.Stats().Left)
	require.GreaterOrEqual(t, at[2].Sub(began), 85*time.Millisecond, "three intervals, less the tolerance")
}

// A base that is down when the program starts says nothing about what it is: it is still
// watched when it has come up.
func TestUnknownBaseIsWatchedUntilItAnswers(t *testing.T) {
	p, base := onWire(t, false)
	s := newShaper(t, scheduler.PerSecond(100_000))
	tr := transport.New(opaque{base}, s)
	down := to(t, t.Context(), "http://127.0.0.1:1/")
	const failures = 100
	for range failures {
		_, err := tr.RoundTrip(down)
		require.Error(t, err)
	}
	send := func() {
		resp, err := tr.RoundTrip(p.message(t, t.Context(), "a", "k"))
		require.NoError(t, err)
		drain(resp)
	}
	send()
	require.NoError(t, p.Break(loopback.IdleClose, 1))
	send()
	require.EqualValues(t, 3, p.Stats().Wire.Requests)
	require.EqualValues(t, failures+3, s.Stats().Left)
}
