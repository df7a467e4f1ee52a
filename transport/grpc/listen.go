package grpcpace

import (
	"errors"
	"net/http"
	"net/textproto"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/transport"
	"github.com/sluice-go/sluice/transport/feedback"
	"github.com/sluice-go/sluice/transport/internal/engine"
)

// listen reads what the end of an RPC, or its first message, says about the limit of its key,
// and has the key follow it. md are its header and its trailer, as far as they have come.
func (p *Pacer) listen(pass *passage, err error, md ...metadata.MD) {
	pass.Finding = engine.Finding{}
	if p.classify == nil || isLocal(err) {
		return // what another Pacer, chained behind this one, has refused no server was asked
	}
	s := status.Convert(err)
	a := engine.Answer{Status: 1 + int(s.Code()), Served: served(s.Code()), Received: time.Now()}
	if err != nil {
		a.Verdict = p.classify(s, metadata.Join(md...)).Within(p.maxHold)
	}
	if h := counts(md); a.Served && !a.Verdict.Refused && h != nil {
		a.Verdict.Wait, a.Verdict.Capped, a.Verdict.Spent = feedback.ReadSpent(h, a.Received, p.maxHold)
		if units, reset, ok := feedback.ReadRemaining(h, a.Received, p.maxHold); ok {
			p.engine.Counted(&pass.Call, a, units, reset)
		}
	}
	p.engine.Answered(&pass.Call, a)
}

func isLocal(err error) bool {
	_, local := errors.AsType[*transport.Error](err)
	return local
}

// served reports whether a code shows that the server serves: those of what is about the one
// RPC, which gRPC itself never makes.
func served(code codes.Code) bool {
	switch code {
	case codes.OK, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition, codes.Aborted, codes.OutOfRange:
		return true
	}
	return false
}

// counts returns what of the metadata may tell what remains, as fields of HTTP, or nil.
func counts(mds []metadata.MD) (h http.Header) {
	for _, md := range mds {
		for name, values := range md {
			if strings.Contains(name, "ratelimit") || strings.Contains(name, "rate-limit") {
				if h == nil {
					h = http.Header{}
				}
				h[textproto.CanonicalMIMEHeaderKey(name)] = values
			}
		}
	}
	return h
}
