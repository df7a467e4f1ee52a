package redis

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// A Policy says what becomes of calls while Redis cannot be asked. There is no default
// that would suit all, so it has to be chosen: [FailLocal], [FailClosed] or
// [FailOpen].
type Policy struct {
	kind      policyKind
	processes int64
}

type policyKind int

const (
	undecided policyKind = iota
	local
	closed
	open
)

// FailLocal has each process pace on its own while Redis is away, at 1/processes of the
// rate. Say how many processes share the limit, at the most: with fewer the limit is not
// used up, with more it is exceeded in proportion. It is what most should choose.
//
// A share begins at a random time within its interval, so that not all processes
// send together, and has 1/processes of the burst, at least 1.
func FailLocal(processes int) Policy { return Policy{local, int64(processes)} }

// FailClosed lets nothing leave while Redis is away. [NewShaper] refuses calls with an
// [*UnavailableError] then.
func FailClosed() Policy { return Policy{kind: closed} }

// FailOpen lets everything leave at once while Redis is away: there is no limit then.
// [Stats] counts what left like that.
func FailOpen() Policy { return Policy{kind: open} }

func (p Policy) String() string {
	switch p.kind {
	case local:
		return fmt.Sprintf("FailLocal(%d)", p.processes)
	case closed:
		return "FailClosed()"
	case open:
		return "FailOpen()"
	}
	return "no policy"
}

func (p Policy) validate() error {
	switch {
	case p.kind == undecided:
		return fmt.Errorf("redis: %v for when Redis is away: choose FailLocal, FailClosed or FailOpen", p)
	case p.kind == local && p.processes < 1:
		return fmt.Errorf("redis: %v: must be at least 1 process", p)
	}
	return nil
}

// share returns the schedule of one process on its own.
func (p Policy) share(r scheduler.Rate, burst int64, c *config) (*scheduler.GCRA, error) {
	if p.kind != local {
		return nil, nil
	}
	period := r.Period()
	if int64(period) > int64(never)/p.processes {
		return nil, fmt.Errorf("redis: %v at rate %v: the share takes longer than %v", p, r, never)
	}
	share := scheduler.Per(r.Units(), period*time.Duration(p.processes))
	g, err := scheduler.NewGCRA(share, max(burst/p.processes, 1), scheduler.WithTolerance(c.tolerance))
	if err != nil {
		return nil, fmt.Errorf("redis: %v: %w", p, err)
	}
	return g, nil
}
