package partner

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// A gate lets the calls of one endpoint in and keeps its score. A request arrives
// and departs; in between it is either spoilt, or it enters, and if it may, it
// works and leaves.
type gate struct {
	epoch       time.Time
	concurrency int
	latency     time.Duration

	mu        sync.Mutex
	meter     meter
	tally     tally
	inHand    int // requests between arrive and depart
	working   int // calls between enter and leave
	highest   int // of inHand
	refused   int64
	bad       int64
	abandoned int64
}

func newGate(e Endpoint) *gate {
	return &gate{
		epoch:       time.Now(),
		concurrency: e.Concurrency,
		latency:     e.Latency,
		meter:       e.Limit.meter(),
		tally:       tally{window: e.Limit.Window},
	}
}

func (g *gate) arrive() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inHand++
	g.highest = max(g.highest, g.inHand)
}

func (g *gate) depart() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inHand--
}

// spoil counts a request that is not a call.
func (g *gate) spoil() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.bad++
}

// A refusal says why a call may not enter.
type refusal struct {
	detail string
	wait   time.Duration // until it might be accepted; 0 if unknown
}

// enter accepts or refuses a call of n units. If it returns nil, leave must follow.
func (g *gate) enter(n int64) *refusal {
	g.mu.Lock()
	defer g.mu.Unlock()
	// Concurrency comes first, because the meter charges what it admits.
	if g.working >= g.concurrency {
		g.refused++
		return &refusal{detail: "too many calls at the same time"}
	}
	// The clock is read under the lock, so that the log is in the order of time.
	now := time.Since(g.epoch)
	if wait := g.meter.admit(now, n); wait > 0 {
		g.refused++
		return &refusal{detail: "too many units in too short a time", wait: wait}
	}
	g.tally.add(now, n)
	g.working++
	return nil
}

// work takes as long as the endpoint's latency. It reports false, and counts the
// call as abandoned, if ctx is over by then.
func (g *gate) work(ctx context.Context) bool {
	if g.latency > 0 {
		timer := time.NewTimer(g.latency)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	// Asked whichever came first: a caller who has gone by now gets no answer.
	if ctx.Err() == nil {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.abandoned++
	return false
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.working--
}

func (g *gate) snapshot() Score {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Score{
		Accepted:           g.tally.calls,
		AcceptedUnits:      g.tally.units,
		Refused:            g.refused,
		BadRequests:        g.bad,
		Abandoned:          g.abandoned,
		WorstWindow:        g.tally.worst,
		SmallestGap:        g.tally.gap,
		HighestConcurrency: g.highest,
	}
}

// wrongMethod answers whatever is not a POST.
func (g *gate) wrongMethod(w http.ResponseWriter, _ *http.Request) {
	g.arrive()
	defer g.depart()
	g.spoil()
	methodNotAllowed(w, http.MethodPost)
}
