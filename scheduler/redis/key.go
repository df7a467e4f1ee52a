package redis

import (
	"errors"
	"strings"
)

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

// keyOf names the one key of a limit. The braces keep what is in them together in a cluster.
func keyOf(name, kind string) string { return "sluice:{" + escapeName.Replace(name) + "}" + kind }

func keyOfGroup(prefix, key string) string {
	return "sluice:{" + escapePart.Replace(prefix) + "/" + escapePart.Replace(key) + "}" + kindPace
}
