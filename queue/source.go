package queue

import (
	"context"
	"errors"
	"time"
)

// A Source is where [Drain] takes its messages from: a broker, a table, a file.
//
// Take blocks until there is a message, and returns up to n of them, n being at least 1: it does
// not wait for more. io.EOF, not wrapped, says that there will be no more; every other error
// stops the drain. Messages that come with either are processed. None, without an error, says
// that there were none in time: Take is called again, at the earliest after 10 ms. Take must
// return soon after ctx ends, and should then put back what it was about to take. Drain never
// calls Take concurrently, so it need not be safe for that. A method may call others of a message
// while Take runs.
//
// A Source that can tell that it has ended while it is not asked, as messages wait for their
// slots or the line is held, is an [Ender].
type Source interface {
	Take(ctx context.Context, n int) ([]Message, error)
}

// A Message is one piece of work that a [Source] has given out. Run processes it: its ctx is that
// of [WithJobContext]. A Message has those of the methods of [Extender], [Returner], [Finisher]
// and [Burier] that its source has something for. Drain calls them one at a time, but for those
// of Extender, which it calls while Run runs.
//
//	Run returned         then
//	nil                  Done
//	Dead(err)            Dead, or Return where there is no such method
//	Again(d)             Run again, after d, in a slot of its own
//	another error        Return
//	not: it panicked     Return
//
// The contexts of Done, Return and Dead do not end with that of Run; they end after 30 s.
type Message interface {
	Run(ctx context.Context) error
}

// An Extender is a [Message] that its source gives out for a limited time, as SQS does with its
// visibility timeout and JetStream with AckWait. Lease is how long that is, from when it was
// taken or extended last. Extend is called after each third of it, also while the message runs,
// with a ctx that ends with the lease. A message whose lease has run out, as Extend failed, does
// not start any more: another consumer may have it. Without this interface messages are kept as
// long as it takes.
type Extender interface {
	Lease() time.Duration
	Extend(ctx context.Context) error
}

// A Returner is a [Message] that can be given back, so that another consumer takes it, or this
// one later. It is called when the line is held or paused, when the taking ends, when more was
// taken than asked for, and when Run has failed. Without this interface a message is kept through
// a hold, and an error, or the end of the taking, goes to the error handler alone.
type Returner interface {
	Return(ctx context.Context) error
}

// A Finisher is a [Message] that is to be acknowledged once Run has returned nil.
type Finisher interface {
	Done(ctx context.Context) error
}

// A Burier is a [Message] that can be laid among the dead letters, with the error that Run has
// wrapped by [Dead].
type Burier interface {
	Dead(ctx context.Context, err error) error
}

// An Ender is a [Source] that can tell that there will be no more without being asked for
// messages: the channel is closed then, and stays the same one.
type Ender interface {
	Ended() <-chan struct{}
}

// Next returns a plain [Source] of the function, which blocks until there is a job and returns
// that. Its errors are those of Take. One job is fetched at a time, so no more of them start than
// one for each call.
func Next(next func(ctx context.Context) (Job, error)) Source { return plain(next) }

type plain func(ctx context.Context) (Job, error)

func (p plain) Take(ctx context.Context, _ int) ([]Message, error) {
	job, err := p(ctx)
	switch {
	case job != nil:
		return []Message{job}, err
	case err == nil:
		return nil, errNoJob
	}
	return nil, err
}

// Run runs the job: a Job is a [Message] that has nothing but that.
func (j Job) Run(ctx context.Context) error { return j(ctx) }

// Dead returns an error with which Run of a [Message] says that it will never succeed: the
// message goes to the dead letters, with err, which Dead's error matches.
func Dead(err error) error {
	if err == nil {
		err = errors.New("queue: dead")
	}
	return &dead{err}
}

type dead struct{ err error }

func (d *dead) Error() string { return d.err.Error() }
func (d *dead) Unwrap() error { return d.err }
