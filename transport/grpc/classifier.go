package grpcpace

import (
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/transport/feedback"
)

// A Classifier tells from the status of an RPC that failed, and from its trailer, whether
// the server refused it because of a limit. It must be safe for concurrent use and must
// change neither. Of the [feedback.Verdict] all counts but Unprocessed and Spent.
type Classifier func(s *status.Status, trailer metadata.MD) feedback.Verdict

// Default is the Classifier for servers that keep to the conventions. Refused are
// RESOURCE_EXHAUSTED, with or without a time, and with a time UNAVAILABLE, INTERNAL, UNKNOWN,
// DEADLINE_EXCEEDED and PERMISSION_DENIED: those that 429, 500, 502, 503, 504 and 403 are over
// HTTP. All others are about the one RPC, and the time that they state is for that.
//
// The time is that of google.rpc.RetryInfo or else of grpc-retry-pushback-ms; a negative one, or
// one that is malformed, counts as absent, and is Final (gRFC A6). RESOURCE_EXHAUSTED without a
// time that says that a message is too large is not Refused.
func Default(s *status.Status, trailer metadata.MD) feedback.Verdict {
	code := s.Code()
	pushed, ok, final := pushback(trailer)
	v := feedback.Verdict{Final: final}
	if code != codes.ResourceExhausted && !heededWithTime(code) {
		return v
	}
	wait, informed := retryInfo(s)
	if !informed {
		wait, informed = pushed, ok
	}
	if !informed && (code != codes.ResourceExhausted || tooLarge(s.Message())) {
		return v
	}
	v.Refused, v.Stated, v.Wait = true, informed, wait
	return v
}

// heededWithTime reports whether a code is a refusal if it comes with a time.
func heededWithTime(code codes.Code) bool {
	switch code {
	case codes.Unavailable, codes.Internal, codes.Unknown, codes.DeadlineExceeded, codes.PermissionDenied:
		return true
	}
	return false
}

func retryInfo(s *status.Status) (time.Duration, bool) {
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			// AsDuration saturates, and an absent delay is 0 seconds by the rules of
			// proto3; but a server that means to say something does not leave it out.
			if d := info.GetRetryDelay(); d != nil && d.AsDuration() >= 0 {
				return d.AsDuration(), true
			}
		}
	}
	return 0, false
}

// pushback reads the one value of the trailer that may be there. A negative one, or one that is
// malformed, says not to send the RPC again (gRFC A6), which is no time.
func pushback(trailer metadata.MD) (wait time.Duration, ok, final bool) {
	values := trailer.Get("grpc-retry-pushback-ms")
	if len(values) == 0 {
		return 0, false, false
	}
	ms, err := strconv.ParseInt(values[0], 10, 32)
	if err != nil || ms < 0 || len(values) > 1 {
		return 0, false, true
	}
	return time.Duration(ms) * time.Millisecond, true, false
}

// tooLarge knows how the implementations of gRPC, on either side, say that a message is
// larger than they take: only the text tells it from a limit.
func tooLarge(message string) bool {
	message = strings.ToLower(message)
	return strings.Contains(message, "message") &&
		(strings.Contains(message, "larger than max") || strings.Contains(message, "too large") || strings.Contains(message, "exceeds maximum size"))
}
