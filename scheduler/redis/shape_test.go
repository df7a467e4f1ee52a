package redis

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/trial"
	"github.com/sluice-go/sluice/scheduler"
)

// A held call has positions, and may leave from due until last, as the true clock shows.
type heldCall struct {
	due, last time.Time
	rows      []row
	units     int64
	epoch     string
}

// A wild process uses a pace as badly as it may: late, or not at all.
type wildProcess struct {
	*lane
	epoch    string
	hand     []heldCall
	returned []tagged[row]
	sent     []paceRequest
}

// A wild world is processes that share a pace, and all that they let leave.
type wildWorld struct {
	t         *testing.T
	rng       *rand.Rand
	server    *miniredis.Miniredis
	store     *server
	link      *link
	rate      scheduler.Rate
	pace      pace
	burst     int64
	tolerance time.Duration
	now       time.Time     // true
	behind    time.Duration // what the clock of the server is behind it
	all       []*wildProcess
	left      []time.Time
	largest   int64
}

// No window has more than the shape allows, whatever becomes of processes, requests and replies:
// slots are used late, and handed back, twice even, by requests that arrive again or not at all;
// replies are lost, processes are killed, the clock of the server is set back.
func TestShapeWhateverHappens(t *testing.T) {
	srv := miniredis.RunT(t)
	client := goredis.NewClient(&goredis.Options{Addr: srv.Addr()})
	defer client.Close()
	trial.Run(t, 6, func(t *testing.T, rng *rand.Rand) {
		rate := scheduler.Per([]int64{1, 3, 7, 10, 333}[rng.IntN(5)], []time.Duration{time.Second, 250 * time.Millisecond, time.Minute}[rng.IntN(3)])
		pace, err := newPace(rate)
		require.NoError(t, err)
		w := &wildWorld{
			t: t, rng: rng, server: srv, store: newServer(client), rate: rate, pace: pace, burst: 1 + rng.Int64N(2)*rng.Int64N(6),
			tolerance: rate.Interval() / 10, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		}
		w.link = makeLink(w.store, site{}, &config{timeout: time.Second})
		srv.FlushAll()
		for range 1 + rng.IntN(4) {
			w.all = append(w.all, &wildProcess{lane: w.link.newLane()})
		}
		for range 400 {
			before := w.now
			w.now = w.now.Add(time.Duration(rng.ExpFloat64() * float64(rate.Interval()) / 2)).Truncate(time.Microsecond)
			if rng.IntN(100) == 0 {
				w.behind += time.Duration(rng.Int64N(int64(10 * rate.Interval()))).Truncate(time.Microsecond)
			}
			srv.SetTime(w.now.Add(-w.behind))
			for _, p := range w.all {
				w.live(p, before)
			}
			w.step(w.all[rng.IntN(len(w.all))])
			if rng.IntN(50) == 0 {
				*w.all[rng.IntN(len(w.all))] = wildProcess{lane: w.link.newLane()}
			}
		}
		w.judge()
	})
}

// live has calls leave that can since the instant before, or their slots pass or go back.
func (w *wildWorld) live(p *wildProcess, before time.Time) {
	var still []heldCall
	for _, c := range p.hand {
		from, to := later(c.due, before), c.last
		if w.now.Before(to) {
			to = w.now
		}
		switch {
		case w.rng.IntN(8) == 0:
			for _, r := range c.rows {
				p.returned = append(p.returned, tagged[row]{0, r})
			}
		case from.After(to) && c.last.Before(w.now): // missed
		case from.After(to) || w.rng.IntN(4) == 0:
			still = append(still, c)
		default:
			at := from.Add(time.Duration(w.rng.Int64N(int64(to.Sub(from)) + 1)))
			for range c.units {
				w.left = append(w.left, at)
			}
		}
	}
	p.hand = still
}

func (w *wildWorld) step(p *wildProcess) {
	r := paceRequest{header: w.link.next(p.lane, w.now), pace: w.pace, burst: w.burst, epoch: p.epoch, within: -1}
	if w.rng.IntN(2) == 0 {
		r.within = time.Duration(w.rng.Int64N(int64(5 * w.rate.Interval())))
	}
	r.expires = w.now.Add(-w.behind).UnixMicro() + 2*w.link.timeout.Microseconds()
	r.cost = w.rng.Int64N(w.burst + 3)
	r.lead, r.rest, r.span = r.cost, w.rng.Int64N(4), 3*w.rate.Interval()
	w.largest = max(w.largest, r.cost)
	for i := range p.returned {
		if p.returned[i].tag == 0 {
			p.returned[i].tag = r.number
		}
	}
	r.returned = slices.Clone(p.returned)
	if w.rng.IntN(60) == 0 {
		r.hold = time.Duration(w.rng.Int64N(int64(3 * w.rate.Interval())))
	}
	p.sent = append(p.sent, r)
	if old := p.sent[w.rng.IntN(len(p.sent))]; w.rng.IntN(5) == 0 && old.number < r.number && p.lost == 0 {
		_, err := w.store.pace(context.Background(), "wild", old) // arrives again
		require.NoError(w.t, err)
	}
	if w.rng.IntN(20) == 0 {
		p.lane.sent(r.header, w.now, errTimeout) // never arrives
		return
	}
	got, err := w.store.pace(context.Background(), "wild", r)
	require.NoError(w.t, err)
	if w.rng.IntN(10) == 0 {
		again, err := w.store.pace(context.Background(), "wild", r)
		require.NoError(w.t, err)
		require.Equal(w.t, got, again)
	}
	if w.rng.IntN(10) == 0 {
		p.lane.sent(r.header, w.now, errTimeout) // no answer
		return
	}
	p.lane.sent(r.header, w.now, nil)
	p.returned = nil
	if got.epoch != p.epoch {
		p.hand, p.epoch = nil, got.epoch
	}
	held := w.now.Add(time.Duration(got.hold-got.now) * time.Microsecond)
	p.hand = slices.DeleteFunc(p.hand, func(c heldCall) bool { return c.due.Before(held) })
	w.take(p, r, got)
}

// take takes in what was reserved: the first units are those of the call, the others single ones.
func (w *wildWorld) take(p *wildProcess, r paceRequest, got paceReply) {
	var units []moment
	for _, row := range got.rows {
		for i := range row.units {
			units = append(units, w.pace.add(row.first, i))
		}
	}
	read := reading{w.now, got.now}
	for size := r.cost; len(units) > 0; size = 1 {
		if size == 0 {
			continue
		}
		c := heldCall{units: size, epoch: got.epoch}
		for _, u := range units[:size] {
			c.rows = append(c.rows, row{first: u, units: 1})
		}
		c.due = read.at(w.pace, w.pace.sub(units[size-1], w.burst-1))
		c.last = read.at(w.pace, units[0]).Add(w.tolerance)
		if size > w.burst {
			c.last = c.due.Add(w.tolerance)
		} else {
			require.False(w.t, w.pace.add(units[0], w.burst-1).before(units[size-1]), "within the burst")
		}
		units = units[size:]
		p.hand = append(p.hand, c)
	}
}

func (w *wildWorld) judge() {
	slices.SortFunc(w.left, time.Time.Compare)
	require.NotEmpty(w.t, w.left)
	most := max(w.burst, w.largest)
	for i := range w.left {
		for k := i + int(most); k < len(w.left); k++ {
			within, n := w.left[k].Sub(w.left[i]), int64(k-i+1)
			if w.rate.For(n-most) > within+w.tolerance+2*time.Microsecond {
				w.t.Fatalf("%d units left within %v at rate %v, burst %d, costs to %d", n, within, w.rate, w.burst, w.largest)
			}
		}
	}
}
