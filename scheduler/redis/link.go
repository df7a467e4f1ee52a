package redis

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// A link is the way to the store: it bounds how long a step takes, and knows whether the store
// can be asked at all. All keys of a Group share one.
type link struct {
	store   store
	site    site
	timeout time.Duration
	onState func(State)

	id     string       // of this link among all processes
	number atomic.Int64 // of the latest request
	lanes  atomic.Int64

	clock atomic.Pointer[reading]
	trip  atomic.Int64 // what a step takes there and back, smoothed, in nanoseconds

	breaker
}

// A reading is what the clock of the store showed, and when that was heard.
type reading struct {
	heard time.Time
	store int64 // microseconds
}

const (
	// probeEvery is how often a store that is away is looked for, while calls come.
	probeEvery = 250 * time.Millisecond
	// connecting is how many timeouts a first step may take: the way to a connection is four
	// round trips, and one of them may be as long as two timeouts.
	connecting = 10
	// mostTimeouts is how many of them a read of the client may take.
	mostTimeouts = 5
	// tripsInTime is how many round trips a step may take, however short the timeout is: as many
	// as it needs if the client has to make a connection.
	tripsInTime = 5
)

func newLink(client goredis.UniversalClient, c *config) (*link, error) {
	switch client := client.(type) {
	case nil:
		return nil, errors.New("redis: client nil: must be a client")
	case *goredis.Ring:
		return nil, errors.New("redis: client is a Ring: it moves a limit to another server, where nothing is known of it, when one is away")
	case interface {
		WithTimeout(time.Duration) *goredis.Client
	}:
		// A client minds no context while it reads, unless it was told to; so that a hanging
		// server ties up no goroutines, its reads end by themselves.
		limited := client.WithTimeout(mostTimeouts * c.timeout)
		return makeLink(newServer(limited), siteOf(limited), c), nil
	}
	return makeLink(newServer(client), siteOf(client), c), nil
}

func makeLink(s store, at site, c *config) *link {
	var id [8]byte
	rand.Read(id[:])
	return &link{store: s, site: at, timeout: c.timeout, onState: c.onChange, id: hex.EncodeToString(id[:])}
}

// A lane is who sends requests one after the other; see header.
type lane struct {
	name string
	lost int64
	at   time.Time // when the first request was sent that had no answer
}

func (l *link) newLane() *lane {
	return &lane{name: l.id + "." + strconv.FormatInt(l.lanes.Add(1), 36)}
}

// next returns the header of the next request of a lane.
func (l *link) next(n *lane, now time.Time) header {
	h := header{lane: n.name, number: l.number.Add(1), lost: n.lost, keep: livingFor}
	if n.lost > 0 {
		h.keep += max(now.Sub(n.at), 0)
	}
	return h
}

// sent notes what came of a request of the lane.
func (n *lane) sent(h header, at time.Time, err error) {
	switch {
	case err == nil:
		n.lost = 0
	case n.lost == 0:
		n.lost, n.at = h.number, at
	}
}

// roundTrip returns what a step takes.
func (l *link) roundTrip() time.Duration { return time.Duration(l.trip.Load()) }

// budget returns how long a step may take, and one that looks for the store.
func (l *link) budget(probes bool) time.Duration {
	slow := tripsInTime * l.roundTrip()
	switch {
	case probes && slow == 0:
		return connecting * l.timeout
	case probes:
		return max(5*l.timeout/2, slow+l.timeout)
	}
	return max(l.timeout, min(slow, mostTimeouts*l.timeout))
}

// ask sends a request: run does, and returns the reply. It sees to it that the store does nothing
// if the request comes too late: a server that hangs has requests in its buffers whose senders
// have long given up, and does them all when it goes on.
func (l *link) ask(ctx context.Context, h *header, probes bool, run func(context.Context) (heard, error)) error {
	for {
		budget, known := l.budget(probes), l.clock.Load()
		h.expires = 0
		if known != nil {
			h.expires = known.store + time.Since(known.heard).Microseconds() + 2*budget.Microseconds()
		}
		limited, cancel := context.WithTimeoutCause(ctx, budget, errTimeout)
		began := time.Now()
		got, err := run(limited)
		took := time.Since(began)
		if err != nil && errors.Is(context.Cause(limited), errTimeout) {
			err = errTimeout
		}
		cancel()
		switch {
		case err != nil:
			l.store.failed(context.WithoutCancel(ctx))
			return err
		case took > budget:
			// A process that was stopped reads a reply long after it came, and would take its
			// slots for later than they are.
			return errTimeout
		}
		l.clock.Store(&reading{time.Now(), got.now})
		if !probes {
			l.measured(took)
		}
		if !got.late {
			return nil
		}
		if known == nil {
			return errTimeout
		}
		// It was in time: the server has another clock than before, or a later request of the
		// lane came first.
		h.number = l.number.Add(1)
	}
}

func (l *link) measured(took time.Duration) {
	trip := l.trip.Load()
	if trip == 0 {
		trip = int64(took)
	}
	l.trip.Store(max(trip+(int64(took)-trip)/8, 1))
}
