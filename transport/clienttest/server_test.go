package clienttest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// A server stands for the partner. It keeps the time at which each request arrived.
type server struct {
	url string

	mu       sync.Mutex
	arrivals []time.Time // guarded by mu
	refusing int         // how many of the next requests are refused; guarded by mu
	refused  time.Time   // before the latest refusal was written; guarded by mu
}

// serve starts a server that accepts requests, and refuses the first ones of them.
func serve(t *testing.T, refuse, accept http.HandlerFunc, refusing int) *server {
	t.Helper()
	s := &server{refusing: refusing}
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.arrive() {
			refuse(w, r)
			return
		}
		accept(w, r)
	}))
	t.Cleanup(listener.Close)
	s.url = listener.URL
	return s
}

func (s *server) arrive() (refuse bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.arrivals = append(s.arrivals, now)
	if s.refusing == 0 {
		return false
	}
	s.refusing--
	s.refused = now
	return true
}

func (s *server) seen() (arrivals []time.Time, refused time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Time(nil), s.arrivals...), s.refused
}

// answer writes a status, headers as pairs, and a body whose type is that of the first
// pair.
func answer(status int, kind, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

const (
	isJSON = "application/json"
	isXML  = "text/xml"
)
