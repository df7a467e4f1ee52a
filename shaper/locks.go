package shaper

// Locks, for maintainers.
//
// Each line has one lock, mu. Nothing blocks and no code of callers runs while it is held,
// but for the schedules and the clock that they may have supplied. It guards all that is
// written beneath it in the line, its limits, its keys, every flow that stands in it and the
// limits and calls of that, and every party of flows. What is written above it, a call's
// channel and timer, and of a flow line, own, party, owner and the rule of its calls, are set
// when made and not changed.
//
// A caller that waits holds no lock. It may read whether its call was refused once ready
// has told it. Answers that no caller waits for are told by unlock, once the lock is free.
//
// While no call waits, nothing is held and the rate is the only limit, calls leave without
// the lock, by changing TAT in a single word. line.lock takes that word first. So what is
// guarded by mu includes TAT, and the lock decides as if there were no other way.
//
// The lock of a shard of a Group, which holds some of the keys, is taken before that of a
// line, and that before the one of precise timing, and before the one that guards a clock
// of the user's while it is read. Under the lock of a shard nothing is done to a line that
// might give a call its answer.
