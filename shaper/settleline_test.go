package shaper_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/oracle"
	"github.com/sluice-go/sluice/internal/trial"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// A settledCall is of a random line: it comes, leaves, and is settled some time later.
type settledCall struct {
	comes          time.Duration
	stated, actual int64
	takes          time.Duration // until it is settled; 0: never
	left           time.Duration

	number int // of its departure in the replay
}

// A heldAt holds the line at an instant until another one.
type heldAt struct{ at, until time.Duration }

// settledLine foretells when each call leaves: the head as soon as the replay allows it, which
// is asked anew whenever a cost becomes known. No two events meet.
func settledLine(calls []*settledCall, holds []heldAt, r *oracle.Replay) {
	const never = time.Duration(math.MaxInt64)
	var now, since, openAt time.Duration
	reopening := false
	var line, open []*settledCall
	rest := slices.Clone(calls)
	for {
		next, do := never, func() {}
		at := func(t time.Duration, f func()) {
			if t < next {
				next, do = t, f
			}
		}
		if len(rest) > 0 {
			at(rest[0].comes, func() { line, rest = append(line, rest[0]), rest[1:] })
		}
		if len(holds) > 0 {
			at(holds[0].at, func() {
				if until := holds[0].until; until > max(openAt, now) {
					openAt, reopening = until, true
				}
				holds = holds[1:]
			})
		}
		for i, c := range open {
			at(c.left+c.takes, func() {
				r.Settle(c.number, c.actual)
				since = now
				open = slices.Delete(open, i, i+1)
			})
		}
		if len(line) > 0 {
			c := line[0]
			due := time.Duration(r.Due(int64(max(c.comes, since, openAt)), c.stated))
			at(max(due, now), func() {
				if reopening {
					r.Forfeit(int64(openAt), c.stated)
					reopening = false
				}
				c.number = r.Leave(int64(due), int64(now), c.stated)
				c.left, since = now, due
				line = line[1:]
				if c.takes > 0 {
					open = append(open, c)
				}
			})
		}
		if next == never {
			return
		}
		now = next
		do()
	}
}

// Calls of a line leave as the replay foretells it, whatever costs become known while they
// wait, and whatever is held.
func TestSettledLineIsTheReplay(t *testing.T) {
	trial.Bubble(t, 400, func(t *testing.T, rng *rand.Rand) {
		const span = 20 * time.Second
		odd := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d)))/2*2 + 1 }
		rate := []scheduler.Rate{scheduler.PerSecond(10), scheduler.PerSecond(3), scheduler.PerMinute(100)}[rng.IntN(3)]
		burst := []int64{1, 10, 50}[rng.IntN(3)]
		var calls []*settledCall
		for range 5 + rng.IntN(30) {
			c := &settledCall{comes: odd(span), stated: 1 + rng.Int64N(10)}
			if rng.IntN(4) > 0 {
				c.takes = odd(4 * time.Second)
				if c.actual = rng.Int64N(c.stated + 1); rng.IntN(4) == 0 {
					c.actual = c.stated + rng.Int64N(5)
				}
			}
			calls = append(calls, c)
		}
		slices.SortFunc(calls, func(a, b *settledCall) int { return cmp.Compare(a.comes, b.comes) })
		var holds []heldAt
		for range rng.IntN(3) {
			h := heldAt{at: odd(span)}
			h.until = h.at + odd(3*time.Second)
			holds = append(holds, h)
		}
		slices.SortFunc(holds, func(a, b heldAt) int { return cmp.Compare(a.at, b.at) })
		want := make([]*settledCall, len(calls))
		for i, c := range calls {
			copied := *c
			want[i] = &copied
		}
		settledLine(want, holds, oracle.NewReplay(oracle.Interval(rate.Units(), rate.Period()), burst, 0))

		depart := frontsOf(t, rate, int(burst))[rng.IntN(4)]
		var done sync.WaitGroup
		start := time.Now()
		for _, h := range holds {
			time.AfterFunc(h.at, func() { depart.hold(start.Add(h.until)) })
		}
		for _, c := range calls {
			done.Go(func() {
				time.Sleep(c.comes)
				d, err := depart.depart(t.Context(), shaper.Call{Cost: int(c.stated)})
				if err != nil {
					t.Error(err)
					return
				}
				if c.left = time.Since(start); c.takes > 0 {
					time.Sleep(c.takes)
					if err := d.Settle(int(c.actual)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		done.Wait()
		synctest.Wait()
		for i := range calls {
			require.Equal(t, want[i].left, calls[i].left, "call %d of %d, at %v, burst %d", i+1, len(calls), rate, burst)
		}
	})
}

// A holdable front is one whose limit can be held.
type holdable struct {
	depart departer
	hold   func(time.Time)
}

// frontsOf returns things with the same limit that calls depart from.
func frontsOf(t *testing.T, r scheduler.Rate, burst int) []holdable {
	with := []shaper.Option{shaper.WithBurst(burst), shaper.WithTolerance(0)}
	s, account := newShaper(t, r, with...), newShaper(t, r, with...)
	group := func(r scheduler.Rate, more ...shaper.Option) *shaper.Key[string] {
		g, err := shaper.NewGroup[string](r, more...)
		require.NoError(t, err)
		return g.Of("a")
	}
	key := group(r, with...)
	under := group(r, append(with, shaper.Under(newShaper(t, scheduler.Unlimited, shaper.WithTolerance(0))))...)
	return []holdable{
		{s.Depart, s.HoldUntil},
		{key.Depart, key.HoldUntil},
		{under.Depart, under.HoldUntil},
		{group(scheduler.Unlimited, shaper.Under(account)).Depart, account.HoldUntil},
	}
}
