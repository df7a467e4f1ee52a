package redis

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/internal/reason"
)

// ErrClosed is the error of what is asked of a closed limit. It matches, by [errors.Is],
// what bears its name in the other packages of this module.
var ErrClosed = reason.New("redis", "closed", "closed")

// zeroLimit is what a zero value says at its first use.
const zeroLimit = "redis: zero Schedule or Quota: make one with New, NewFixedWindow or NewSlidingLog"

// errTimeout is what an operation ends with that has taken too long.
var errTimeout timeoutError

type timeoutError struct{}

func (timeoutError) Error() string   { return "no answer in time" }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }

// An UnavailableError says that the store cannot be asked, and which one that is.
// [FailClosed] refuses calls with it, and [State] carries it.
type UnavailableError struct {
	Store string // the address, without user and password
	Err   error  // why, in words without user and password

	text string
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("redis: store %s unavailable: %s", e.Store, e.text)
}

// Unwrap returns why.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Label returns "unavailable"; see [shaper.Refusal.Label].
func (e *UnavailableError) Label() string { return "unavailable" }

// WouldWait returns how often the store is looked for: a caller that comes again after that
// long may be let through. A queue.Queue does, and is not given up for good.
func (e *UnavailableError) WouldWait() time.Duration { return probeEvery }

// Timeout reports whether the store gave no answer in time.
func (e *UnavailableError) Timeout() bool {
	var timed interface{ Timeout() bool }
	return errors.As(e.Err, &timed) && timed.Timeout()
}

// A redacted error says what another one says but for secrets, which it does not hand out
// in any other way either.
type redacted struct {
	text string
	err  error
}

func (e redacted) Error() string        { return e.text }
func (e redacted) Is(target error) bool { return errors.Is(e.err, target) }

func (e redacted) Timeout() bool {
	var timed interface{ Timeout() bool }
	return errors.As(e.err, &timed) && timed.Timeout()
}

// minSecret is how long a password is that is taken out of texts: without a shorter one,
// which keeps no intruder out, they would be riddled with holes that spell it.
const minSecret = 4

// A site is where a store is, for people.
type site struct {
	name    string
	secrets []string
}

func siteOf(client goredis.UniversalClient) site {
	var addrs, secrets []string
	switch c := client.(type) {
	case interface{ Options() *goredis.Options }:
		addrs, secrets = []string{c.Options().Addr}, []string{c.Options().Password}
	case interface {
		Options() *goredis.ClusterOptions
	}:
		addrs, secrets = slices.Clone(c.Options().Addrs), []string{c.Options().Password}
	default:
		return site{name: fmt.Sprintf("%T", client)}
	}
	s := site{}
	for _, secret := range secrets {
		if len(secret) >= minSecret {
			s.secrets = append(s.secrets, secret)
		}
	}
	for i, addr := range addrs {
		// A whole URL in the place of an address is a mistake, but none that should
		// print a password.
		if at := strings.LastIndexByte(addr, '@'); at >= 0 {
			s.secrets = append(s.secrets, addr[:at+1])
			addrs[i] = addr[at+1:]
		}
	}
	s.name = strings.Join(addrs, ",")
	return s
}

func (s site) unavailable(err error) *UnavailableError {
	text := err.Error()
	for _, secret := range s.secrets {
		text = strings.ReplaceAll(text, secret, "")
	}
	if text != err.Error() {
		err = redacted{text, err}
	}
	return &UnavailableError{Store: s.name, Err: err, text: text}
}
