package redis

import (
	"context"
	_ "embed"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

//go:embed step.lua
var stepSource string

var stepScript = goredis.NewScript(stepSource)

// A request is what one step asks for.
type request struct {
	units  int64 // to reserve
	within int64 // all of them within so many microseconds or none; -1: whenever it is

	surplus
	known    told          // what the process was told last
	rejoin   bool          // from an outage in which processes may have paced on their own
	hold     time.Duration // hold all for so long
	forfeits bool          // nothing is saved up
}

// A told is TAT as it was told, and what the clock of the server showed then. It goes back
// to the server as it came: what TAT is by the clock of the process is later than what the
// server meant.
type told struct {
	tat moment
	now int64
}

// A surplus is units to hand back: those between rest and tail, if TAT is tail still.
type surplus struct {
	back     bool
	rest     moment
	tail     moment
	returned int64 // how many they are
}

// A reply is what a step has found and done. Times are microseconds of the server.
type reply struct {
	now     int64
	tat     moment // of the first of the units
	granted int64
	hold    int64
}

// All processes have noticed an outage if none has asked for that long.
const quiet = 100 * time.Millisecond

// step runs one step.
func (l *link) step(ctx context.Context, keys keyring, p pace, burst int64, r request) (reply, error) {
	early := p.add(moment{}, burst-1)
	tail, rest := []any{"", ""}, []any{"", ""}
	if r.back {
		tail = []any{r.tail.us, r.tail.frac}
		rest = []any{r.rest.us, r.rest.frac}
	}
	var settling time.Duration
	if r.rejoin {
		// All processes have found the store by then.
		settling = probeEvery + l.timeout
	}
	args := []any{p.p, p.q, early.us, early.frac, r.units, r.within, tail[0], tail[1], rest[0], rest[1],
		r.known.tat.up(), settling.Microseconds(), quiet.Microseconds(), ceilMicros(r.hold), flag(r.forfeits),
		(3 * l.timeout).Milliseconds() + 1, burst, r.known.now}
	got, err := l.timely(ctx, stepScript, keys.forRequest(l.requestID()), args, 5, 3)
	if err != nil {
		return reply{}, err
	}
	return reply{now: got[0], tat: moment{got[1], got[2]}, granted: got[3], hold: got[4]}, nil
}

func ceilMicros(d time.Duration) string {
	us := d.Microseconds()
	if d%time.Microsecond > 0 {
		us++
	}
	return strconv.FormatInt(min(us, maxTerm), 10)
}

func flag(set bool) string {
	if set {
		return "1"
	}
	return "0"
}
