package partner

import (
	"fmt"
	"net/http"
)

// A Key names what tells the customers of an endpoint apart. The limit, the holds
// and the score are then kept for each of them; the concurrency is still that of
// the endpoint. The zero Key makes no difference between them.
type Key string

// The keys.
const (
	BySender Key = "sender" // the field from of a message; payments have none
	ByHost   Key = "host"   // the Host header
)

const (
	maxLines = 1000 // most customers that are told apart
	maxName  = 64   // longest name of one, in bytes

	// others is the customer that the rest share.
	others = "(others)"
)

// of returns the name of the customer that sent r.
func (k Key) of(r *http.Request, sender string) string {
	name := ""
	switch k {
	case BySender:
		name = sender
	case ByHost:
		name = r.Host
	}
	if len(name) > maxName {
		return others
	}
	return name
}

func (k Key) validate(known ...Key) error {
	for _, one := range known {
		if k == one {
			return nil
		}
	}
	return fmt.Errorf("key %q: must be one of %q", k, known)
}
