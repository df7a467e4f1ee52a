package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/transport"
	"github.com/sluice-go/sluice/transport/feedback"
)

// streamed answers with a body that comes in the parts that are sent into a pipe.
func streamed(p *partner, code int) *io.PipeWriter {
	r, w := io.Pipe()
	script(p, func(req *http.Request) (*http.Response, error) {
		resp := answer(req, code)
		resp.Body, resp.ContentLength = r, -1
		return resp, nil
	})
	return w
}

// A stream that a classifier wants to see the start of reaches the caller as it comes, before
// there is enough of it for the classifier.
func TestStreamThatAClassifierLooksAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		w := streamed(p, http.StatusOK)
		tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)), transport.WithClassifier(looks))
		resp, err := tr.RoundTrip(get(t, t.Context(), "/"))
		require.NoError(t, err)
		go func() {
			for range 20 {
				time.Sleep(sec)
				_, _ = io.WriteString(w, "data")
			}
			w.Close()
		}()
		began, buf := time.Now(), make([]byte, 10)
		for i := range 20 {
			n, err := resp.Body.Read(buf)
			require.NoError(t, err)
			require.Equal(t, "data", string(buf[:n]))
			require.Equal(t, time.Duration(i+1)*sec, time.Since(began))
		}
		_, err = resp.Body.Read(buf)
		require.Equal(t, io.EOF, err)
	})
}

// stubborn is a body whose Close does not end a Read.
type stubborn struct{ release chan struct{} }

func (b stubborn) Read([]byte) (int, error) { <-b.release; return 0, io.EOF }
func (b stubborn) Close() error             { return nil }

// A Read ends with a Close, and with the context of the request.
func TestReadOfABodyThatIsReadAheadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a Close
		p := newPartner()
		body := stubborn{make(chan struct{})}
		script(p, func(req *http.Request) (*http.Response, error) {
			resp := answer(req, http.StatusBadRequest)
			resp.Body, resp.ContentLength = body, -1
			return resp, nil
		})
		tr := transport.New(p, placesOf(t, nil), transport.WithMaxInFlight(1))
		resp, err := tr.RoundTrip(get(t, t.Context(), "/"))
		require.NoError(t, err)
		time.AfterFunc(sec, func() { resp.Body.Close() })
		_, err = resp.Body.Read(make([]byte, 1))
		require.ErrorIs(t, err, http.ErrBodyReadAfterClose)
		require.Equal(t, sec, time.Since(p.started))
		require.True(t, isFree(t, tr))
		close(body.release)
	})
	synctest.Test(t, func(t *testing.T) { // its context, which ends what comes from net/http
		p := newPartner()
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		w := streamed(p, http.StatusBadRequest)
		context.AfterFunc(ctx, func() { w.CloseWithError(context.Cause(ctx)) })
		tr := transport.New(p, placesOf(t, nil), transport.WithMaxInFlight(1), transport.WithClassifier(looks))
		resp, err := tr.RoundTrip(get(t, ctx, "/"))
		require.NoError(t, err)
		_, err = io.WriteString(w, "start")
		require.NoError(t, err)
		require.False(t, isFree(t, tr))
		cancel(gone)
		synctest.Wait()
		require.True(t, isFree(t, tr))
		body, err := io.ReadAll(resp.Body)
		require.Equal(t, gone, err)
		require.Equal(t, "start", string(body))
		require.NoError(t, resp.Body.Close())
	})
}

// The request is the caller's again when the body is closed, though the classifier may look
// at it later.
func TestRequestIsTheCallersOnceTheBodyIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		script(p, late(http.StatusOK, "{}", time.Hour))
		asked := ""
		tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)), transport.WithClassifier(func(a *feedback.Answer) feedback.Verdict {
			a.Body()
			asked = a.Request().Header.Get("X-Call") + a.Request().URL.Path
			return feedback.Verdict{}
		}))
		req := get(t, t.Context(), "/one")
		req.Header.Set("X-Call", "one")
		resp, err := tr.RoundTrip(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		req.Header.Set("X-Call", "two")
		req.URL.Path = "/two"
		synctest.Wait()
		require.Equal(t, "one/one", asked)
	})
}

// A classifier that panics about a body which comes late, or has come before, keeps no place.
func TestClassifierThatPanicsKeepsNoPlace(t *testing.T) {
	for _, code := range []int{http.StatusOK, http.StatusBadRequest, http.StatusTooManyRequests} {
		for _, after := range []time.Duration{0, 20 * ms, 900 * ms} { // within the second that a body is awaited
			synctest.Test(t, func(t *testing.T) {
				p := newPartner()
				script(p, late(code, "x", after))
				tr := transport.New(p, placesOf(t, nil), transport.WithMaxInFlight(1), transport.WithRetry(transport.Retry{}),
					transport.WithClassifier(func(a *feedback.Answer) feedback.Verdict {
						if len(a.Body()) > 0 {
							panic("a body")
						}
						return feedback.Verdict{}
					}))
				require.PanicsWithValue(t, "a body", func() {
					resp, err := tr.RoundTrip(get(t, t.Context(), "/"))
					require.NoError(t, err)
					pass(2 * sec)
					resp.Body.Close()
				}, "%d after %v", code, after)
				synctest.Wait()
				require.True(t, isFree(t, tr))
			})
		}
	}
}
