package redis

import (
	"errors"
	"fmt"
)

// A Policy says what becomes of calls while Redis cannot be asked. There is no default
// that would suit all, so it has to be chosen: [FailLocal], [FailClosed] or
// [FailOpen].
type Policy struct {
	kind policyKind
	most int64 // processes; 0: not stated
}

type policyKind int

const (
	undecided policyKind = iota
	local
	closed
	open
)

// FailLocal has each process pace on its own while Redis is away, at 1/n of the rate, where n is
// how many processes have used the limit lately, as Redis told last; at most so many as are stated.
// A process that has never heard from Redis takes the number that is stated, and lets nothing
// leave if there is none. It is what most should choose.
//
// A share begins at a random time within its interval, so that not all processes send together,
// and has 1/n of the burst, at least 1.
func FailLocal(most ...int) Policy {
	switch len(most) {
	case 0:
		return Policy{kind: local}
	case 1:
		if most[0] > 0 {
			return Policy{local, int64(most[0])}
		}
	}
	return Policy{local, -1}
}

// FailClosed lets nothing leave while Redis is away: calls are refused, those that wait as well,
// with a [*shaper.Refusal] whose reason is an [*UnavailableError].
func FailClosed() Policy { return Policy{kind: closed} }

// FailOpen lets everything leave at once while Redis is away: there is no limit then. [Stats]
// counts what left like that. Before Redis has answered for the first time it refuses calls, as
// [FailClosed] does.
func FailOpen() Policy { return Policy{kind: open} }

func (p Policy) String() string {
	switch p.kind {
	case local:
		if p.most == 0 {
			return "FailLocal()"
		}
		return fmt.Sprintf("FailLocal(%d)", p.most)
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
	case p.most < 0:
		return errors.New("redis: FailLocal: must be at least 1 process, and one number if any")
	}
	return nil
}

// processes returns among how many the limit is shared while Redis is away, by how many it told
// of; 0 if nothing is known.
func (p Policy) processes(living int64) int64 {
	if living == 0 || p.most > 0 && p.most < living {
		return p.most
	}
	return living
}
