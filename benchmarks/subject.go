package main

import (
	"context"

	goredis "github.com/redis/go-redis/v9"
)

// A subject is a library that is measured, with what it can do. All are used as their
// documentation shows, with a burst of 1 where they pace.
type subject struct {
	name string
	// ready returns a limiter that never makes a call wait, though it decides each
	// time: no limiter is told that there is no limit.
	ready func() limiter
	// pace returns a limiter at a rate that up to waiting calls wait for. It is nil if
	// the library only says yes or no.
	pace func(rate rate, waiting int) limiter
	// byKey returns a limiter for each of up to keys keys. It is nil but for the subjects
	// of the scenarios of keys.
	byKey func(rate rate, burst, keys int) keyed
	// enqueue and under return how a call waits without a goroutine, for a limit, and for those
	// of a key and of the account that all keys are under. They are nil but for the subjects of
	// the scenarios of that.
	enqueue func(rate rate, waiting int) enqueuer
	under   func(ofKey, ofAccount rate, keys int) keyedEnqueuer
	// pool returns what runs jobs, so many at a time, with room for so many that wait. It is nil
	// but for the subjects of the scenarios of jobs.
	pool func(workers, waiting int) pool
	// share returns a function that waits for the limit that others share. It is nil but
	// for the subjects of the scenarios over Redis.
	share func(*goredis.Client) func(context.Context) error
}

// A limiter is what the scenarios call: the methods of a library behind functions of
// one kind. What a limiter cannot do is nil.
type limiter struct {
	allow   func() bool
	wait    func(context.Context) error
	setRate func(rate)
	waiter  waiter // the limiter itself, if it has Wait(ctx)
	cancels bool   // wait returns when its context ends
}

type waiter interface {
	Wait(context.Context) error
}

// choose returns the subjects that can do something, in their order.
func choose(from []subject, can func(subject) bool) []subject {
	var chosen []subject
	for _, s := range from {
		if can(s) {
			chosen = append(chosen, s)
		}
	}
	return chosen
}

// pacers returns the subjects that pace, of a scenario that takes part in so many rounds.
// Where no target is at stake juju is left out, to save time: it sleeps as uber does.
func pacers(rounds int) []subject {
	return choose(subjects, func(s subject) bool {
		return canPace(s) && (rounds >= targetRounds || s.name != "juju")
	})
}

func canAllow(s subject) bool   { return s.ready().allow != nil }
func canWait(s subject) bool    { return s.ready().wait != nil }
func canPace(s subject) bool    { return s.pace != nil }
func canCancel(s subject) bool  { return canPace(s) && s.pace(perSecond(1), 1).cancels }
func canSetRate(s subject) bool { return canPace(s) && s.pace(perSecond(1), 1).setRate != nil }
func isWaiter(s subject) bool   { return s.ready().waiter != nil }
