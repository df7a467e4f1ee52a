package redis

import (
	"context"
	"time"
)

// A store keeps the states of limits, each under a key, and changes one in a step: atomically,
// and by a clock of its own, which all processes share. It is all that a limit knows of Redis.
//
// What a store must do is what the conformance suite of the tests asks of it. In particular a
// request that arrives twice is done once and answered as it was the first time, one that
// arrives behind a later one of its lane, or after it has expired, does nothing, and of one that
// the lane says had no answer nothing stays reserved.
type store interface {
	pace(ctx context.Context, key string, r paceRequest) (paceReply, error)
	count(ctx context.Context, key string, r countRequest) (countReply, error)
	// failed is called after a step that had no answer: it looks where the store is now.
	failed(ctx context.Context)
}

// A header is what each request has. Requests of a lane are sent one after the other, with rising
// numbers.
type header struct {
	lane    string // the process, and after a dot which of its lanes
	number  int64
	lost    int64         // the first one that had no answer since the latest that had; or 0
	keep    time.Duration // how long the lane counts as living, and is remembered
	expires int64         // the instant of the store's, in microseconds, from which on nothing is to be done; 0: none
}

// A heard is what each reply tells.
type heard struct {
	now    int64 // of the store's clock, in microseconds
	late   bool  // nothing was done
	living int64 // processes that use the limit
}

// A paceRequest is a step of a pace.
type paceRequest struct {
	header
	pace      pace
	burst     int64
	epoch     string        // of what is returned; what is returned in another one is void
	known     int64         // TAT as the process was told it last, 0 if it was not
	remaining time.Duration // until then, as far as the process knows
	hold      time.Duration // hold all for so long
	even      bool          // nothing is saved up
	settle    time.Duration // if none has asked lately, begin anew after that
	returned  []tagged[row]
	charged   []tagged[int64]

	cost   int64         // of the call that is next, 0 for none
	lead   int64         // how many of its units have to be due when it leaves
	within time.Duration // by when it must leave, from now; below 0: whenever it is
	rest   int64         // units that wait behind it
	span   time.Duration // how far behind it they may lie
}

// A paceReply tells what was reserved: first of all for the call that is next, if it can leave
// in time; if not nothing is.
type paceReply struct {
	heard
	epoch string
	hold  int64  // until when all are held
	next  moment // when a unit may leave that is not reserved; or the call, if it was told too late
	tat   int64
	rows  []row
}

// A countRequest is a step of a quota.
type countRequest struct {
	header
	log      bool // of a sliding window
	window   time.Duration
	shift    int64 // where windows begin
	limit    int64
	returned []tagged[grant]
	charged  []tagged[int64]
	units    int64
	least    int64 // fewer are of no use
}

type countReply struct {
	heard
	granted int64
	at      int64  // when the window ends, or of a log when to come again if nothing was granted
	of      string // where it was taken from
}

// A tagged thing is to be told once, whichever request it arrives with: the tag is the number of
// the first one.
type tagged[T any] struct {
	tag int64
	is  T
}

// quiet: all processes have noticed an outage if none has asked for that long.
const quiet = 100 * time.Millisecond
