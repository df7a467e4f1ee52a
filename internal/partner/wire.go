package partner

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// A Break is a way in which a connection fails a request, so that the request gets no
// answer and nothing of it is processed. After some of them net/http's client sends
// the request again by itself.
type Break string

// The breaks.
const (
	// IdleClose closes an HTTP/1 connection when a further request arrives on it,
	// as if the partner had closed the idle connection a moment before. Requests
	// on fresh connections pass. net/http resends a GET, and a POST with an
	// Idempotency-Key.
	IdleClose Break = "idle-close"

	// HangUp closes the connection, fresh or not, when it has read the request.
	// The caller cannot tell whether the request was processed.
	HangUp Break = "hang-up"

	// GoAway sends an HTTP/2 GOAWAY that disowns the request, and with it every
	// request that is unanswered or still to come on the connection. net/http
	// resends them all on a new one.
	GoAway Break = "goaway"

	// RefuseStream resets the request's HTTP/2 stream with REFUSED_STREAM.
	// net/http resends it on the same connection: the first time at once, and
	// then after a second and more.
	RefuseStream Break = "refused-stream"
)

// Breaks returns all breaks.
func Breaks() []Break { return []Break{IdleClose, HangUp, GoAway, RefuseStream} }

func (b Break) validate() error {
	if !slices.Contains(Breaks(), b) {
		return fmt.Errorf("break %q: must be one of %q", b, Breaks())
	}
	return nil
}

// Break lets the next n requests that it applies to fail like that; an n of 0 ends
// it. IdleClose and HangUp apply to what [Partner.Start] serves, GoAway, RefuseStream
// and HangUp to what [Partner.StartHTTP2] serves. A request for /_stats never fails.
// Break refuses a kind that does not exist.
func (p *Partner) Break(kind Break, n int) error {
	if err := kind.validate(); err != nil {
		return fmt.Errorf("partner: %w", err)
	}
	p.wire.plan(kind, n)
	return nil
}

// A WireScore counts the requests that reached the partner at all, each attempt for
// itself, whatever became of it. Requests for /_stats are left out.
type WireScore struct {
	Requests    int64 `json:"requests"`
	Connections int64 `json:"connections"` // opened, also those for /_stats

	// Broken is how many of the requests failed in which way.
	Broken map[Break]int64 `json:"broken,omitempty"`

	// WorstWindow is the most requests in any closed window of the length that
	// Config.Window has.
	WorstWindow int64 `json:"worst_window"`

	// SmallestGap is the shortest time between two requests, in ns. It has no
	// meaning while Requests is below 2.
	SmallestGap time.Duration `json:"smallest_gap_ns"`
}

// A wire counts what comes in and decides what fails. It is safe for concurrent use.
type wire struct {
	epoch time.Time

	mu          sync.Mutex
	planned     map[Break]int
	broken      map[Break]int64
	tally       tally
	connections int64
}

func newWire(window time.Duration, planned map[Break]int) *wire {
	w := &wire{
		epoch:   time.Now(),
		planned: make(map[Break]int),
		broken:  make(map[Break]int64),
		tally:   tally{window: window},
	}
	maps.Copy(w.planned, planned)
	return w
}

func (w *wire) connect() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.connections++
}

func (w *wire) plan(kind Break, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.planned[kind] = n
}

// arrive counts a request. It returns how that fails: in the first way among the
// possible ones that is planned, or not at all, which is "".
func (w *wire) arrive(possible ...Break) Break {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tally.add(time.Since(w.epoch), 1)
	for _, kind := range possible {
		if w.planned[kind] > 0 {
			w.planned[kind]--
			w.broken[kind]++
			return kind
		}
	}
	return ""
}

// take counts further requests that a failure took with it.
func (w *wire) take(kind Break, n int) {
	if n == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken[kind] += int64(n)
}

func (w *wire) snapshot() WireScore {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := WireScore{
		Requests:    w.tally.calls,
		Connections: w.connections,
		WorstWindow: w.tally.worst,
		SmallestGap: w.tally.gap,
	}
	if len(w.broken) > 0 {
		s.Broken = maps.Clone(w.broken)
	}
	return s
}
