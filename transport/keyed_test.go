package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	"github.com/stretchr/testify/require"
)

func to(t *testing.T, ctx context.Context, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	return req
}

// A flood of new hosts takes no more memory than the bound allows
// and gives no host a second chance: one that has been called waits its time out.
//
// Sources: richardwooding/feed-mcp#117, arumes31/uplarr#126, temporalio/temporal#11065,
// SithumRaigamage/techmeetups#18, luisgamas/uxnan#101.
func TestCaseH04KeysAreBoundedAndABusyOneIsNeverReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hosts, bound = 100_000, 1000
		var last time.Time
		refuse := false
		base := roundTripFunc(func(req *http.Request) (*http.Response, error) {
			last = time.Now()
			if refuse {
				return says(req, http.StatusTooManyRequests, "", "Retry-After: 1"), nil
			}
			return answer(req, http.StatusOK), nil
		})
		g := newGroup(t, scheduler.PerMinute(1), shaper.WithMaxKeys(bound))
		tr := transport.NewKeyed(base, nil, g, transport.WithMaxInFlight(10), transport.WithAdaptiveRate(0.1))
		began := time.Now()
		_, err := tr.RoundTrip(to(t, t.Context(), "https://API.example:443/a"))
		require.NoError(t, err)

		flood := func(from, to int) (sent int) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x/", nil)
			require.NoError(t, err)
			for i := from; i < to; i++ {
				req.URL.Host = fmt.Sprintf("h%d.example", i)
				switch _, err := tr.RoundTrip(req); {
				case err == nil:
					sent++
				case !errors.Is(err, shaper.ErrTooManyKeys) || !errors.Is(err, transport.ErrNotSent):
					require.NoError(t, err)
				}
			}
			return sent
		}
		refuse = true // so that the Transport has something to remember as well
		require.Equal(t, bound-1, flood(0, hosts/10))
		before := heap()
		require.Zero(t, flood(hosts/10, hosts))
		require.Less(t, heap()-before, int64(1<<20), "memory is flat")
		require.Equal(t, bound, g.Len())
		refuse = false

		time.Sleep(30 * time.Second)
		_, err = tr.RoundTrip(to(t, t.Context(), "https://api.example/b"))
		require.NoError(t, err)
		require.Equal(t, time.Minute, last.Sub(began), "both spellings are one partner, which was not forgotten")
	})
}

// heap is what is in use after the garbage is gone.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Keys whose rate was cut, and that were not used since, make room for others in time.
func TestReducedKeysDoNotFillTheGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bound = 50
		refuse := true
		base := roundTripFunc(func(req *http.Request) (*http.Response, error) {
			if refuse {
				return says(req, http.StatusTooManyRequests, "", "Retry-After: 1"), nil
			}
			return answer(req, http.StatusOK), nil
		})
		g := newGroup(t, scheduler.PerSecond(1), shaper.WithMaxKeys(bound))
		tr := transport.NewKeyed(base, nil, g, transport.WithAdaptiveRate(0.1))
		for i := range bound {
			_, err := tr.RoundTrip(to(t, t.Context(), fmt.Sprintf("http://h%d.example/", i)))
			require.NoError(t, err)
		}
		refuse = false
		time.Sleep(time.Minute)
		fresh := to(t, t.Context(), "http://fresh.example/")
		_, err := tr.RoundTrip(fresh)
		require.ErrorIs(t, err, shaper.ErrTooManyKeys, "their rate is still known")
		time.Sleep(time.Hour)
		for range 2 { // the first one that is turned away makes the room
			_, err = tr.RoundTrip(fresh)
		}
		require.NoError(t, err)
	})
}

// However many keys are refused, each is held; one that is too many to be remembered runs
// at its whole rate, for nothing could raise it again.
func TestMoreRefusedKeysThanAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const remembered = 10_000
		refuse := true
		base := roundTripFunc(func(req *http.Request) (*http.Response, error) {
			if refuse {
				return says(req, http.StatusTooManyRequests, "", "Retry-After: 5"), nil
			}
			return answer(req, http.StatusOK), nil
		})
		g := newGroup(t, scheduler.PerSecond(1))
		tr := transport.NewKeyed(base, nil, g, transport.WithAdaptiveRate(0.1))
		req := to(t, t.Context(), "http://x/")
		for i := range remembered + 1 {
			req.URL.Host = fmt.Sprintf("h%d.example", i)
			_, err := tr.RoundTrip(req)
			require.NoError(t, err)
		}
		require.Equal(t, 5*sec, g.Delay("http://h0.example"))
		require.Equal(t, 5*sec, g.Delay(transport.HostKey(req.URL)))
		rates := map[scheduler.Rate]int{}
		for _, st := range g.Range {
			rates[st.Rate]++
		}
		require.Equal(t, 1, rates[scheduler.PerSecond(1)])
		require.Len(t, rates, 2)
	})
}

// The key is the user's: what it says is what errors and traces say, and nothing more.
func TestKeyOfOnesOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		script(p, status(http.StatusTooManyRequests, "Retry-After: 60"))
		var log eventLog
		byAccount := func(req *http.Request) string { return "account " + req.Header.Get("Account") }
		tr := transport.NewKeyed(p, byAccount, newGroup(t, scheduler.PerSecond(10)), transport.WithHooks(log.trace()))
		send := func(account string) error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			req := get(t, ctx, "/")
			req.Header.Set("Account", account)
			_, err := tr.RoundTrip(req)
			return err
		}
		require.NoError(t, send("a"))
		err := send("a")
		var e *transport.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "account a", e.Key)
		require.Equal(t, http.StatusTooManyRequests, e.Status)
		require.True(t, e.HeldUntil.Equal(p.started.Add(time.Minute)))
		require.Contains(t, e.Error(), "transport: account a: not sent, waited 0s, would need 1m0s, held by the partner (status 429) until 2000-01-01T00:01:00Z")
		require.NoError(t, send("b"))
		for _, told := range log.take() {
			require.Contains(t, []string{"account a", "account b"}, told.Key)
		}
		require.Len(t, p.seen(), 2)
	})
}

// With New the partners share one pace, and an error still tells which one was asked.
func TestOnePaceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := transport.New(newPartner(), newShaper(t, scheduler.PerSecond(1)))
		for _, url := range []string{"http://a.example/", "http://b.example/"} {
			_, err := tr.RoundTrip(to(t, t.Context(), url))
			require.NoError(t, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := tr.RoundTrip(to(t, ctx, "https://C.example:443/"))
		var e *transport.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "https://c.example", e.Key)
	})
}

// A hold that the program has set is not the partner's, even if the partner has refused
// something before.
func TestHoldOfTheProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		script(p, status(http.StatusTooManyRequests, "Retry-After: 1"))
		s := newShaper(t, scheduler.PerSecond(10))
		tr := transport.New(p, s)
		mustSend(t, tr, "/")
		soon, cancel := context.WithTimeout(t.Context(), 100*ms)
		defer cancel()
		_, err := tr.RoundTrip(get(t, soon, "/"))
		require.Equal(t, http.StatusTooManyRequests, err.(*transport.Error).Status)

		until := time.Now().Add(time.Hour)
		s.HoldUntil(until)
		_, err = tr.RoundTrip(get(t, soon, "/"))
		require.Zero(t, err.(*transport.Error).Status, "that of the partner is the shorter one")
		require.True(t, err.(*transport.Error).HeldUntil.Equal(until))
	})
}
