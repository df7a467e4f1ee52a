// Package queue runs jobs in the line of a Shaper: at its pace, and in its order.
//
// Into a [Queue] the program pushes items, and a function runs for each. [Drain] is the other
// direction: it pulls messages out of a broker, a table or a file.
//
// A job is a call in the Shaper's one line, beside the requests of a transport and all other
// calls. It starts when it leaves. So it has a cost and a class, and everything that the line
// knows is true of jobs as well: the rate, holds and pauses, fair shares of keys, places in
// flight. The workers of a queue are places, too: a job leaves when there is a slot and a worker,
// and takes neither before. Nothing waits in a goroutine: a job that waits is a small struct.
//
// # The life of a job
//
// An accepted job has exactly one outcome, and [Queue.Stats] counts it in exactly one place at
// any moment:
//
//	                 ┌─── Again ────┐
//	                 ▼              │
//	Submit ──┬──▶ Delayed ──▶ ┐     │
//	         └──▶ Waiting ──▶ Running ──▶ Done      it returned nil
//	                 │           └──────▶ Failed    it returned an error, panicked, or called
//	                 │                              runtime.Goexit
//	                 ├──────────────────▶ Expired   it would have started after its NotAfter
//	                 └──────────────────▶ Returned  handed back by Stop or Shutdown, or told by
//	                                                Close; or it could never leave
//
// A delayed job waits for its [NotBefore], or has asked to run [Again], and goes on to wait for its
// slot when that time has come.
//
// # The order
//
// Of the jobs of one key the most urgent class goes first, and in a class the one that came first;
// see [shaper.WithClasses] for how far a class overtakes. A job with NotBefore counts as coming
// at that instant. One that runs again counts from when it came first. Between keys it is as
// between those of a [shaper.Group]: by arrival, or by weight.
//
// # The states of a Queue
//
//	        Shutdown            the last job has ended,
//	                            or the ctx of Shutdown has
//	 open ──────────▶ draining ────────────────────────────▶ closed
//	   │                 │                                     ▲
//	   └─────────────────┴───── Stop, Close, the line closed ──┘
//
//	state     Submit and TrySubmit    jobs that have not started
//	open      accept                  start, each in its slot
//	draining  refuse with ErrClosed   start, each in its slot
//	closed    refuse with ErrClosed,  never start: they are handed back by Stop or Shutdown, or
//	          or the line's error     told to the error handler by Close
//
// Jobs that run go on in all of them. Close, and a Shutdown whose ctx ends, cancel their
// contexts; Stop does not.
//
// A Queue that has nothing to do has no goroutine and no timer, so it may be dropped without
// Shutdown.
//
// # Room
//
// [WithCapacity] bounds what waits for a slot, [WithMaxDelayed] what is delayed, and
// [WithCapacityPerKey] both of one key: a Submit that finds no room waits, and a TrySubmit gets
// [ErrFull]. The room is the queue's own and beside that of the line ([shaper.WithQueue]), so a
// job, once accepted, is never refused for want of room. What bounds the line in time
// ([shaper.WithMaxDelay], say), or how many keys there are, makes jobs wait beside it; they are
// tried again, in their order, at the latest every 100 ms.
package queue
