// Package redis lets any number of processes share one limit through Redis or Valkey.
//
//	limit, err := redis.New(client, "partner", scheduler.PerSecond(100), 1, redis.FailLocal(4))
//	line, err := redis.NewShaper(limit)
//	err = line.Wait(ctx) // leaves when it may, as with any Shaper
//
// # What it offers
//
//   - [New]: a pace, as [scheduler.GCRA] keeps one, shared. [NewShaper], or
//     [shaper.NewFrom], makes calls wait for it; [Schedule.Allow] asks it as a meter.
//   - [NewFixedWindow] and [NewSlidingLog]: a quota such as 10,000 per day, shared exactly.
//     It can stand beside a pace, by [shaper.WithLimits].
//   - [NewGroup]: a pace for each key.
//
// # How it works
//
// A script reserves slots, in one step that reads and writes the theoretical arrival
// time, TAT, by the clock of the server. A process reserves a run of slots as its line
// needs them, as much as leaves within 50 ms, and uses each at its instant. So Redis sees
// one step per run and not one per call, and an instant means the same to all, whatever
// their clocks show. A process that dies takes the slots of one run with it; slots that
// no call needs any more are handed back.
//
// # When Redis is away
//
// The [Policy] decides, and has to be chosen. An operation that takes longer than 100 ms
// ([WithTimeout]) means that it is away; from then on no call waits for it, and it is
// looked for every 250 ms, or soon after, while calls come. docs/distributed.md tells what
// is promised meanwhile, and why.
//
// # The client
//
// Any client of go-redis will do. Operations end by themselves within the timeout where
// it is a [*goredis.Client]; for others, such as a cluster client, set their ReadTimeout
// to as little, or ContextTimeoutEnabled. Retries of the client do no harm: a request that
// arrives twice is answered as it was the first time. Any client that may write to
// the database can change the limits.
//
// # Keys
//
// All keys of a limit begin with sluice:{name}, where the braces make a cluster keep them
// together, and all of them expire. Redis 5 and Valkey 7.2, or later, will do.
package redis
