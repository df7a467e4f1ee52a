package redis

import (
	"errors"
	"strings"
)

// A keyring names the keys of one limit. They share a hash tag, so that a cluster keeps
// all of them on one node whatever the name is.
type keyring struct{ state string }

var errNoName = errors.New("redis: name empty: processes share a limit by its name")

// Braces would begin or end the tag; the sign that hides them must be hidden as well.
var escapeName = strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D")

// In a Group a slash stands between the prefix and the key, and nowhere else.
var escapePart = strings.NewReplacer("/", "%2F", "%", "%25", "{", "%7B", "}", "%7D")

// Limits of different kinds with one name have nothing to do with each other.
const (
	kindPace   = ":pace"
	kindWindow = ":window"
	kindLog    = ":log"
)

func newKeyring(name, kind string) keyring {
	return keyring{"sluice:{" + escapeName.Replace(name) + "}" + kind}
}

func groupKeyring(prefix, key string) keyring {
	return keyring{"sluice:{" + escapePart.Replace(prefix) + "/" + escapePart.Replace(key) + "}" + kindPace}
}

// forRequest returns the keys for a script: the state, and what a request with this id
// was told.
func (k keyring) forRequest(id string) []string { return []string{k.state, k.state + ":" + id} }
