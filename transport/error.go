package transport

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/sluice-go/sluice/internal/reason"
	"github.com/sluice-go/sluice/transport/internal/engine"
)

// ErrNotSent matches, by [errors.Is], an [*Error] of a call of which nothing has left the
// process: it is safe to send it elsewhere or later. It does not match one whose Sent is
// true, because a hop or an attempt before has left, nor the plain context error that
// RoundTrip returns for a context that had ended before the call.
//
// A client that sends several attempts of its own through a Transport makes several calls.
// The error of its last one tells of that one alone; see the package documentation.
var ErrNotSent = errors.New("transport: request not sent")

// Error tells why a request was not sent. RoundTrip returns it unwrapped; a caller
// behind [http.Client] gets it out of the *url.Error with [errors.As].
//
// It matches, by [errors.Is], [ErrNotSent], if Sent is false, and all that Reason matches: the
// Waiter's own reasons, [context.DeadlineExceeded] for a deadline,
// [context.Canceled] for a cancelled wait. (If [http.Client.Timeout] fires during
// the wait, net/http may put its own timeout error in place of this one.)
//
// No field and no text of it holds anything of the request beyond the key, unless
// the Waiter's own error does.
type Error struct {
	// Reason is the error of the Waiter, of the context that ended in the line, or
	// one that wraps ErrCost.
	Reason error
	// Key is that of a Transport made by NewKeyed. Otherwise it names the partner's host
	// as [HostKey] does. It is empty for a request without URL.
	Key string
	// Sent is true if something of the call had left before: the request that was answered
	// with the redirect which this one follows, or an earlier attempt. Only the hop or the
	// attempt that the error is about was not sent.
	Sent bool
	// Waited is the time that the request spent in the line.
	Waited time.Duration
	// Wait is the wait that the request would have needed, counted from the
	// refusal, as the Waiter predicted it. 0 means unknown.
	Wait time.Duration
	// RetryAt is the moment of the refusal plus Wait: the earliest time at which a
	// new attempt makes sense. It is the zero Time if Wait is unknown.
	RetryAt time.Time
	// HeldUntil is when the hold ends that kept the request back, if the Waiter
	// tells of one. It is the zero Time if the pace alone was the reason.
	HeldUntil time.Time
	// Status is the status code of the answer by which the partner has set that hold, if the
	// Transport has seen it: 429, as a rule, and 200 if that said that nothing remains.
	Status int
}

var _ net.Error = (*Error)(nil)

// newError describes the Waiter's refusal of a request that waited for it.
func newError(reason error, key string, waited time.Duration) *Error {
	e := &Error{Reason: reason, Key: key, Waited: waited}
	if e.Wait = engine.WouldWait(reason); e.Wait > 0 {
		e.RetryAt = time.Now().Add(e.Wait)
	}
	return e
}

// A teller is an error that tells the wait and the hold in its text, and can be told
// without them.
type teller interface {
	error
	Brief() string
}

// Error names the partner, the time waited, the wait that was needed if it is
// known, and the reason. Times are rounded, and each is told once.
func (e *Error) Error() string {
	why, told := fmt.Sprint(e.Reason), false
	if t, ok := e.Reason.(teller); ok {
		why = t.Brief()
	} else {
		_, told = errors.AsType[teller](e.Reason) // somewhere within that text
	}
	var b strings.Builder
	b.WriteString("transport: ")
	if e.Key != "" {
		b.WriteString(e.Key + ": ")
	}
	if e.Sent {
		b.WriteString("an earlier hop or attempt was sent, the next one ")
	}
	fmt.Fprintf(&b, "not sent, waited %v", reason.Round(e.Waited))
	if e.Wait > 0 && !told {
		fmt.Fprintf(&b, ", would need %v", reason.Round(e.Wait))
	}
	until := e.HeldUntil.UTC().Format(time.RFC3339)
	switch {
	case e.Status != 0:
		fmt.Fprintf(&b, ", held by the partner (status %d) until %s", e.Status, until)
	case !e.HeldUntil.IsZero() && !told:
		fmt.Fprintf(&b, ", held until %s", until)
	}
	return b.String() + ": " + why
}

// Unwrap returns the Reason.
func (e *Error) Unwrap() error { return e.Reason }

// Is reports whether target is [ErrNotSent] and nothing was sent. [errors.Is] asks the
// Reason about everything else.
func (e *Error) Is(target error) bool { return target == ErrNotSent && !e.Sent }

// sentBefore returns an error that says of one attempt what err says, and does not say of
// the whole call that nothing was sent.
func sentBefore(err error) error {
	if !errors.Is(err, ErrNotSent) {
		return err
	}
	about := Error{Reason: err}
	if below, ok := errors.AsType[*Error](err); ok {
		about = *below
	}
	about.Sent = true
	if errors.Is(about.Reason, ErrNotSent) {
		about.Reason = ofAnAttempt{about.Reason}
	}
	return &about
}

// ofAnAttempt is an error that matches all but [ErrNotSent].
type ofAnAttempt struct{ err error }

func (e ofAnAttempt) Error() string        { return e.err.Error() }
func (e ofAnAttempt) Is(target error) bool { return target != ErrNotSent && errors.Is(e.err, target) }
func (e ofAnAttempt) As(target any) bool   { return errors.As(e.err, target) }

// Timeout reports whether time was the reason: the context's deadline passed in the
// line, or the Waiter said on arrival that the wait would pass that deadline or its
// own longest delay. A cancelled context and a full or closed line are no timeouts.
// The method makes it a [net.Error], and is what Timeout of *url.Error asks.
func (e *Error) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.As(e.Reason, &t) && t.Timeout()
}

// Temporary is always false. It completes [net.Error]; clients that still ask it,
// resty v3 among them, retry if it is true.
func (e *Error) Temporary() bool { return false }

// RetryableError is always false. aws-sdk-go-v2 asks it before its rules for
// connection errors and timeouts, and would otherwise retry this error like any
// failure to send.
func (e *Error) RetryableError() bool { return false }

// NonRetriable does nothing: having it is what counts. azcore, the core of the
// Azure SDK, retries every failure to send but those that have it.
func (e *Error) NonRetriable() {}
