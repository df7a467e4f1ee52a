package grpcpace

import (
	"errors"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/transport"
)

// listen has the key of an RPC follow how the RPC has ended.
func (p *Pacer) listen(pass *passage, err error, trailer metadata.MD) {
	switch {
	case p.classify == nil:
	case err == nil:
		p.accept(pass)
	case isLocal(err):
		// Another Pacer, chained behind this one, has refused it. No server was asked.
	default:
		if v := p.classify(status.Convert(err), trailer); v.Refused {
			p.refuse(pass, v, time.Now())
		}
	}
}

func isLocal(err error) bool {
	_, local := errors.AsType[*transport.Error](err)
	return local
}
