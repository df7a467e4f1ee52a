package partner

import (
	"context"
	"net/http"
	"slices"
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
	key         Key
	hint        Hint // of refusals, unless the mood has another

	mu         sync.Mutex
	limit      Limit
	mood       Mood
	forced     int           // calls that are refused whatever the limit says
	forcedWait time.Duration // which these are told
	lines      map[string]*line
	total      counts
	inHand     int // requests between arrive and depart
	working    int // calls between enter and leave
	highest    int // of inHand
	bad        int64
	abandoned  int64
}

func newGate(e Endpoint, hint Hint) *gate {
	return &gate{
		epoch:       time.Now(),
		concurrency: e.Concurrency,
		latency:     e.Latency,
		key:         e.Key,
		hint:        hint,
		limit:       e.Limit,
		mood:        e.Misbehave.clone(),
		lines:       make(map[string]*line),
		total:       counts{tally: tally{window: e.Limit.Window}},
	}
}

// arrive returns when the request did.
func (g *gate) arrive() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inHand++
	g.highest = max(g.highest, g.inHand)
	return time.Since(g.epoch)
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

// A denial says why a call may not enter.
type denial struct {
	detail string
	wait   time.Duration // until it might be accepted; 0 if unknown
	at     time.Duration // when that was found
	line   *line
	limit  Limit
	mood   Mood
}

// enter accepts or refuses a call of n units that a customer of that name brought at
// arrived. If it returns nil, leave must follow.
func (g *gate) enter(arrived time.Duration, name string, n int64) *denial {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lineLocked(name)
	g.noteLocked(l, arrived)
	// The clock is read under the lock, so that the log is in the order of time.
	now := time.Since(g.epoch)
	d := &denial{at: now, line: l, limit: g.limit, mood: g.mood}
	switch {
	case g.forced > 0:
		g.forced--
		d.detail, d.wait = "not now", g.forcedWait
	// Concurrency comes before the meter, because the meter charges what it admits.
	case g.working >= g.concurrency:
		d.detail = "too many calls at the same time"
	case n > g.limit.largest():
		// Only if the limit has dropped since the call was read.
		d.detail = "more units than the limit"
	default:
		wait := l.meter.admit(now, n)
		if wait <= 0 {
			l.tally.add(now, n)
			g.total.tally.add(now, n)
			g.working++
			return nil
		}
		d.detail, d.wait = "too many units in too short a time", wait
	}
	g.refuseLocked(l)
	return d
}

// refuse answers a call that may not enter, in the way that the mood wants.
func (g *gate) refuse(w http.ResponseWriter, r *http.Request, d *denial) {
	g.linger(r.Context(), w, d.mood.Slow)
	now := time.Now()
	at := now.Sub(g.epoch)
	if d.wait > 0 {
		// A slow answer states what is left.
		d.wait = max(1, d.wait-(at-d.at))
	}
	hint := d.mood.Hint
	if hint == "" {
		hint = g.hint
	}
	clock := now.Add(d.mood.Skew)
	setDate(w.Header(), clock)
	stated := hint.set(w.Header(), statement{now: clock, wait: d.wait, limit: d.limit})
	body := d.mood.Refusal.answer(d)
	stated = max(stated, body.stated)

	// The hold begins before the caller can know of it, and not with the decision:
	// a call that came while a slow answer was waiting is no fault of its caller.
	g.mu.Lock()
	d.line.hold.extend(at, stated)
	g.mu.Unlock()
	w.Header().Set("Content-Type", body.contentType)
	for name, values := range d.mood.Header {
		w.Header()[http.CanonicalHeaderKey(name)] = slices.Clone(values)
	}
	w.WriteHeader(body.status)
	_, _ = w.Write(pad(body.bytes, d.mood.Pad))
}

// work takes as long as the endpoint's latency and its mood. It reports false, and
// counts the call as abandoned, if ctx is over by then.
func (g *gate) work(ctx context.Context, w http.ResponseWriter) bool {
	g.linger(ctx, w, add(g.latency, g.slow()))
	// Asked whichever came first: a caller that has gone by now gets no answer.
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
	s := g.total.score()
	s.BadRequests = g.bad
	s.Abandoned = g.abandoned
	s.HighestConcurrency = g.highest
	if g.key != "" && len(g.lines) > 0 {
		s.Keys = make(map[string]Score, len(g.lines))
		for name, l := range g.lines {
			s.Keys[name] = l.score()
		}
	}
	return s
}

// largest returns the most units that one call can bring at present.
func (g *gate) largest() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.limit.largest()
}

// wrongMethod answers whatever is not a POST.
func (g *gate) wrongMethod(w http.ResponseWriter, _ *http.Request) {
	g.arrive()
	defer g.depart()
	g.spoil()
	g.stamp(w)
	methodNotAllowed(w, http.MethodPost)
}
