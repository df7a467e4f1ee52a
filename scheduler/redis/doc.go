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
// A script reserves slots, in one step that reads and writes the theoretical arrival time, TAT,
// by the clock of the server. A process reserves a run of slots as its line needs them, as much as
// leaves within 50 ms, and uses each at its instant. So Redis sees one step per run and not one per
// call at full load, and an instant means the same to all, whatever their clocks show. Slots that
// no call needs any more go back and are used first; a process that is killed takes at most two
// runs with it.
//
// # When Redis is away
//
// The [Policy] decides, and has to be chosen. An operation that takes longer than 100 ms
// ([WithTimeout]) means that it is away; from then on no call waits for it, and it is looked for
// every 250 ms, or soon after, while calls come. docs/distributed.md tells what is promised
// meanwhile, and why.
//
// # The client
//
// Any client of go-redis will do but a Ring. Operations end by themselves within five timeouts
// where it is a [*goredis.Client]; for others, such as a cluster client, set their ReadTimeout to
// as little, or ContextTimeoutEnabled. Retries of the client do no harm: a request that arrives
// twice is answered as it was the first time. Any client that may write to the database can change
// the limits.
//
// # Keys
//
// Each limit is one key, which begins with sluice:{name} and expires. Redis 5 and Valkey 7.2, or
// later, will do.
//
// # For maintainers
//
// A line tells its schedule what waits. The pump (pump.go) gets units for it from the store in
// steps, one at a time; what is in hand and what is asked for is the affair of a Schedule
// (schedule.go, with its positions in row.go) or a Quota (quota.go). The store is a contract of two
// operations (store.go); Redis is one (server.go, batch.go, and the scripts, of which records.lua
// is the head). The link (link.go, breaker.go) bounds what a step takes, and knows whether the store
// answers. Beside them: allow.go the meter, pace.go exact arithmetic, policy.go, options.go, key.go,
// errors.go, and shaper.go, which makes Shapers and Groups.
//
// Locks are taken in this order: that of a line, that of a pump, and one of breaker.telling and
// breaker.mu; telling before any pump's when the store comes or goes. A pump calls its line back,
// and sends, without a lock.
package redis
