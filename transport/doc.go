// Package transport sends HTTP requests at a stated pace.
//
// [New] wraps an [http.RoundTripper] in a [Transport]: each request first waits its
// turn at a [Waiter], then goes to the wrapped transport unchanged. A
// *shaper.Shaper and x/time's *rate.Limiter are Waiters, so is anything with their
// Wait method. Every RoundTrip takes its own turn, and so does each hop of a redirect
// that [http.Client] follows: to the partner it is a request like any other (RFC
// 9110, section 15.4). What the partner answers comes back as it is: a 429 is a
// response, not an error.
//
// # Partners that are listened to
//
// An answer that refuses the request because of a limit (package feedback tells which do)
// holds the line: no request with that key is sent before the time that the partner
// states, however many wait. A hold only moves forward, and when it ends the first request
// leaves at once and the next T later. A partner that states no time is left alone for a
// second, doubled from refusal to refusal up to a minute, until a request is accepted;
// refusals of requests that were in flight together count once. A stated time above
// [WithMaxHold] is cut to that; then a single request goes, and the others wait for its
// answer for a little.
//
// A plain 503 may tell of one path among many that succeed. It counts for two, a success
// takes one off, and it holds the key only while that count is at its bound: if no success
// is known, at ten such refusals in a row, and when they are more than a third of the
// answers for a while.
//
// What the header states is heeded when the header is there. If a classifier wants to see
// the body, the start of it is read on a goroutine, for 10 s at most, and moves the hold
// forward when it has come. The caller has the answer at once if the header has stated a
// time; otherwise it waits for the body for 50 ms at most. It gets all of the body.
//
// An answer that is no refusal, and says that nothing remains, holds the key until its reset, too
// (feedback.Verdict.Spent): a 200 with RateLimit-Remaining: 0, say. It cuts no rate and is not
// sent again. The last request that a count allows holds it as well, if what is in flight, which
// the partner may not have counted yet, is as much as remains. So a partner that counts down is
// never asked for more, as long as what is sent before its first answer of a window fits that;
// [WithMaxInFlight] bounds it. Counts that arrive out of order move nothing back. With
// [NewKeyed] requests in flight are counted from the first such answer of their key on.
//
// A refusal may say that it is about the whole account (feedback.Verdict.Account). With keys of a
// Group that is under an account, by shaper.Under, it holds the account; otherwise it holds its
// key only, and the next key finds out by itself.
//
// The Waiter alone knows whether a key is held, if it is a [HoldTeller]. So a hold that is lifted
// by hand, by Resume of a Shaper, is over at once and costs no slot.
//
// A hold needs a Waiter that is a [Holder]. The answer itself comes back as it came,
// its body unread. [WithRetry] sends again what is safe to send again,
// [WithAdaptiveRate] lowers the rate of a partner that refuses, and [WithTrace] and
// [WithHooks] tell what happens.
//
// [New] has one line for all requests. With [NewKeyed] and a *shaper.Group[string] each
// partner's host, or whatever a function of yours returns, has a line of its own.
//
// # What a request costs, and what the limit is
//
// Where the cost is known only afterwards, as that of tokens, a request is charged with an upper
// bound ([WithCost], [ContextWithCost]) and settled by its answer: [WithSettle] reads a header,
// and [Settle] is for the caller who has read the body or the stream. What is not settled stays
// charged in full. [WithLimits] hands on what the partner states about its limits.
//
// # Attempts on the wire
//
// What net/http resends by itself below the Transport, because a request met a dead
// idle connection or an HTTP/2 GOAWAY, is one more request for the partner. It cannot
// wait any more, so it is charged: what is behind it waits longer. That needs a Waiter
// that is a [Charger], such as the Shaper. Attempts are counted by a trace in the
// request's context; what something below makes to another host in the same context, for a
// token say, does not count. Above a base of an unknown kind that is done for the first requests
// and then for some, until one of them has shown that net/http is below.
//
// # Time limits
//
// The wait counts against the request's context, and against [http.Client.Timeout],
// which net/http puts into that context. Timers of the wrapped transport, such as
// [http.Transport.ResponseHeaderTimeout], start when the request leaves the line. A
// Waiter that knows its line, as the Shaper does, refuses on arrival what cannot
// leave in time, so the caller learns at once and no slot is spent.
//
// # When a request is not sent
//
// Three causes are told apart.
//
//   - The context had ended before the call: RoundTrip returns the plain error of
//     the context. The pace has no part in it and is not mentioned.
//   - The context ended in the line: an [*Error] whose Reason is the error of the
//     context, with the time waited.
//   - The Waiter refused, or the request states no valid cost: an [*Error] with the
//     reason and, where the Waiter predicts it, the wait that was needed. HeldUntil
//     tells a partner's hold from the pace.
//
// errors.Is(err, [ErrNotSent]) holds for an [*Error] if nothing of the call has left the
// process, through [http.Client] too: the request can go elsewhere or be queued again
// without the risk of a double charge. It does not hold behind a redirect or an attempt that
// has left, of which the Error tells by its field Sent.
//
// # Client libraries that retry
//
// A local refusal says that there is no room now. A client library that takes it
// for a network fault asks again at once, which only makes the line longer. An
// [*Error] tells aws-sdk-go-v2 and azcore not to. These libraries cannot be told by
// an error and have to be configured:
//
//   - stripe-go retries every send error twice. Set MaxNetworkRetries:
//     stripe.Int64(0) in stripe.BackendConfig.
//   - openai-go retries every send error twice. Pass option.WithMaxRetries(0).
//   - resty v2 retries every send error if SetRetryCount is above 0. Leave it at 0,
//     or have every condition given to AddRetryCondition return false for an [*Error]:
//     with at least one condition present the conditions alone decide, and one that
//     returns true is enough for a retry.
//   - go-retryablehttp retries every send error four times. Give its Client a
//     CheckRetry that returns false, err for an [*Error] and calls
//     retryablehttp.DefaultRetryPolicy otherwise.
//
// resty v3 asks whether an error is temporary, which an [*Error] is not, but it also asks
// conditions of the caller's own: they should say no to an [*Error] too. slack-go,
// twilio-go and go-github do not retry it. go-github answers calls by itself after a
// refusal unless it is made with github.WithDisableRateLimitCheck. A RoundTripper around
// the Transport that replaces errors hides from them what an [*Error] tells.
//
// go-github, aws-sdk-go-v2, azcore and openai-go return the plain error of a context
// that is cancelled in the line, and no [*Error]. What is refused on arrival they pass
// on. docs/clients.md shows how to plug each in.
//
// Retries that they make for other reasons pass through the Transport like first
// attempts and take their own turn. Each is a call of its own to it: if one that broke has
// left and the next is refused, the library returns ErrNotSent, which is about the last
// attempt. [WithRetry] in place of the library's own retries tells the whole, and so does
// Granted of a [Trace] in the call's context.
package transport
