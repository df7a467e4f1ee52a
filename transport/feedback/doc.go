// Package feedback reads what a partner's answer says about its limit.
//
// A [Classifier] looks at one response, an [Answer], and returns a [Verdict]: was the
// request turned away because of a limit, and when may the next one come? [Default]
// serves partners that follow the standards. Some do not: they throttle in a 200, in
// a 400 or in a 500, or write the time into the text of a message. For those of them
// that are widely used there is a Classifier by their name, such as [Vonage] or
// [GitHub]; each falls back to Default. [ByHost] chooses between them by the partner
// that answered, and [Any] puts rules of your own in front.
//
// [ReadHeaders] is the parser of the headers by itself. It understands, in the order
// in which they are trusted:
//
//  1. Retry-After-Ms and its kin, in milliseconds;
//  2. Retry-After (RFC 9110, section 10.2.3), also with a fraction;
//  3. RateLimit of draft-ietf-httpapi-ratelimit-headers-10 (a List of RFC 9651), the
//     Dictionary of draft 07, and the three fields of the drafts before it;
//  4. X-RateLimit-Reset and what is like it, if the matching count of remaining
//     requests is 0.
//
// On a 429 a reset without any count is read as well, after all of these.
//
// Whatever a header holds, the wait read from it is absent or in [0, max]. It is
// rounded up to the next nanosecond and never down: no request comes back too early.
//
// The package is pure. It reads no clock, starts no goroutine and keeps no state
// between answers; its functions are safe for concurrent use, a single Answer is not.
// Nothing of a header or body gets into an error or a log, and the work per answer is
// bounded: a field of more than 4 KiB or 64 values counts as absent, and of a body no
// more than [MaxPeek] bytes are looked at.
package feedback
