package shaper

// Locks, for maintainers.
//
// Each Shaper has one lock, mu. Nothing blocks and no code of callers runs while it is held,
// but for the schedule and the clock that they may have supplied.
//
//	guarded by mu                         set when made and not changed
//	time, sched, pacer, pacing, base,     capacity, maxDelay, maxBacklog,
//	full, share, line and its calls,      gcra, limits, pool,
//	refusals, nextDue, putOff, gate,      time.clock, time.epoch,
//	places, life, counts, late, unused,   a call's ready channel and timer
//	debt, alarm, wordOpen, and what gcra
//	and limits point to
//
// A caller that waits holds no lock. It may read whether its call was refused once ready
// has told it.
//
// While no call waits, nothing is held and the rate is the only limit, calls leave without
// the lock, by changing TAT in a single word. Shaper.lock takes that word first. So what is
// guarded by mu includes TAT, and the lock decides as if there were no other way.
//
// The lock of a shard of a Group, which holds some of the keys, is taken before that of a
// Shaper, and that before the one of precise timing, and before the one that guards a clock
// of the user's while it is read.
