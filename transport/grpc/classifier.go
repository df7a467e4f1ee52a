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
// change neither. Of the [feedback.Verdict] the fields Refused, Stated and Wait count.
type Classifier func(s *status.Status, trailer metadata.MD) feedback.Verdict

// Default is the Classifier for servers that keep to the conventions. Refused are
// RESOURCE_EXHAUSTED, with or without a time, and UNAVAILABLE with a time.
//
// The time is that of google.rpc.RetryInfo or else of grpc-retry-pushback-ms; a negative
// one, or one that is malformed, counts as absent. RESOURCE_EXHAUSTED without a time that
// says that a message is too large is not Refused.
func Default(s *status.Status, trailer metadata.MD) feedback.Verdict {
	code := s.Code()
	if code != codes.ResourceExhausted && code != codes.Unavailable {
		return feedback.Verdict{}
	}
	wait, ok := retryInfo(s)
	if !ok {
		wait, ok = pushback(trailer)
	}
	if !ok && (code == codes.Unavailable || tooLarge(s.Message())) {
		return feedback.Verdict{}
	}
	return feedback.Verdict{Refused: true, Stated: ok, Wait: wait}
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

// pushback reads the one value of the trailer that may be there. A negative one says not
// to retry at all, which is no time.
func pushback(trailer metadata.MD) (time.Duration, bool) {
	values := trailer.Get("grpc-retry-pushback-ms")
	if len(values) != 1 {
		return 0, false
	}
	ms, err := strconv.ParseInt(values[0], 10, 32) // by gRFC A6
	if err != nil || ms < 0 {
		return 0, false
	}
	return time.Duration(ms) * time.Millisecond, true
}

// tooLarge knows how the implementations of gRPC, on either side, say that a message is
// larger than they take: only the text tells it from a limit.
func tooLarge(message string) bool {
	message = strings.ToLower(message)
	return strings.Contains(message, "message") &&
		(strings.Contains(message, "larger than max") || strings.Contains(message, "too large") || strings.Contains(message, "exceeds maximum size"))
}
