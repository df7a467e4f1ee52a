// Package queue runs jobs at the pace of a [Waiter].
//
// A [Queue] is a bounded line of jobs and the workers that run them: the program pushes
// jobs in. [Drain] is the other direction: it pulls messages out of a broker, a table or
// a file. Both know the pace only as a [Waiter], a type whose Wait method returns when
// one job may start; *shaper.Shaper and x/time's *rate.Limiter are such types.
//
// Every job of a Queue costs exactly one slot of the Waiter, and the slot is obtained
// before the job leaves the line. So waiting occupies no job, a cancelled wait loses
// none, and a job that waits for its slot has not been tried and cannot have failed.
// Drain likewise obtains the slot before it takes the message; see [Source] for the one
// case in which it needs a second slot.
//
// # The life of a job
//
// An accepted job has exactly one outcome, and [Queue.Stats] counts it in exactly one
// place at any moment:
//
//	Submit ──▶ Waiting ──▶ Running ──▶ Done     the job returned nil
//	              │           └──────▶ Failed   it returned an error, panicked, or
//	              │                             called runtime.Goexit
//	              └──────────────────▶ Returned handed back by Shutdown, or reported
//	                                            by Close
//
// # The states of a Queue
//
//	      Shutdown, Close             the last job has ended,
//	                                  the ctx of Shutdown has, or Close
//	 open ──────────────▶ draining ───────────────────────────────────▶ closed
//	   │                     │                                            ▲
//	   └─────────────────────┴──────── the Waiter failed for good ────────┘
//
//	state     Submit and TrySubmit    jobs in the line
//	open      accept                  start, one per slot
//	draining  refuse with ErrClosed   start, one per slot
//	closed    refuse with ErrClosed,  never start; Shutdown hands them back
//	          or with the Waiter's error
//
// A Queue that has nothing to do has no goroutine and no timer: workers start when jobs
// come and leave when the line is claimed. A Queue may therefore be dropped without
// Shutdown, provided that its line is empty.
//
// # Claims
//
// A slot that is obtained while the line is empty would go stale: the job that comes
// minutes later would start on it at once, and the next one on a fresh slot right behind,
// closer together than the pace allows. So a worker first claims one of the jobs that
// wait, then waits for the slot, and then takes whichever job is at the head. There are
// never more claims than jobs; ten workers and one job make one call of Wait. Because
// slots are given to the head of the line and not to the claimed job, jobs start in the
// order of submission whichever worker is served first.
package queue
