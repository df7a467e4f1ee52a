// Package sluice is the root of a module that paces the calls a program makes to others: state
// the partner's limits, and each call leaves as early as they allow, in order, and never
// earlier. It has no code of its own. Take the package that fits how the calls are made:
//
//   - [github.com/sluice-go/sluice/shaper]: you make the calls. Wait(ctx) before each; also
//     one limit for each of many keys, and state that survives a restart.
//   - [github.com/sluice-go/sluice/transport]: the calls go through an http.Client, or an SDK
//     that takes one. It listens to the partner's 429 and Retry-After.
//   - [github.com/sluice-go/sluice/queue]: the calls are jobs, for a bounded line and
//     workers, or messages that are pulled from a broker.
//   - [github.com/sluice-go/sluice/scheduler]: the limits themselves, as pure state machines
//     without a clock: to simulate a limit, to meter one, or to write one.
//
// Modules of their own:
//
//   - github.com/sluice-go/sluice/scheduler/redis: several processes share one limit.
//   - github.com/sluice-go/sluice/transport/grpc: for gRPC clients.
//
// The shortest use:
//
//	s, err := shaper.New(scheduler.PerSecond(10))
//	...
//	if err := s.Wait(ctx); err != nil {
//		return err // not sent, and no slot used
//	}
//	send()
package sluice
