// Package event tells what becomes of limits, queues, transports and stores: their changes of
// state, for a log, a page or an alarm. It tells of no single call that leaves; that is what
// snapshots and metrics are for.
//
// Whatever can tell takes a [Hook] by an option WithEvents and a name for itself. [Log] makes
// one of a slog.Logger.
package event

import (
	"fmt"
	"time"
)

// A Kind says what has happened.
type Kind int

// The kinds of events, and the fields of an [Event] that each has beside Time, Of and Key.
const (
	Held           Kind = iota + 1 // nothing leaves before Until
	Paused                         // nothing leaves until further notice
	Resumed                        // a hold or a pause was lifted
	RateChanged                    // to Rate
	Refused                        // a call, because of Err
	Closed                         // no call is taken any more
	KeysFull                       // there is no room for another key
	PartnerRefused                 // the partner has, with Status; until Until, if that is known
	Retried                        // what was refused with Status, or failed with Err, is sent again
	StoreAway                      // the store that a limit is shared by does not answer, because of Err
	StoreBack                      // it answers again
)

var kinds = [...]string{
	Held: "held", Paused: "paused", Resumed: "resumed", RateChanged: "rate changed", Refused: "refused",
	Closed: "closed", KeysFull: "keys full", PartnerRefused: "partner refused", Retried: "retried",
	StoreAway: "store away", StoreBack: "store back",
}

// String returns the kind in words.
func (k Kind) String() string {
	if k > 0 && int(k) < len(kinds) {
		return kinds[k]
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// An Event is one change of state. What a kind does not tell is zero.
type Event struct {
	Time   time.Time
	Of     string // the name of what it has happened to
	Key    string // of a Group or a keyed transport; empty if it is about none
	Kind   Kind
	Until  time.Time
	Rate   fmt.Stringer
	Status int // an HTTP status, or a gRPC code
	Err    error
}

// A Hook is called for each event, after it and outside of all locks, by the goroutine that
// brought it about. It must not block, and may be called by several goroutines at once.
type Hook func(Event)
