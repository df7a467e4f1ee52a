// Package reason has what the errors of all packages of this module have in common:
// sentinels of one name that match each other, labels, and durations that are easy to
// read.
package reason

import (
	"errors"
	"time"
)

// An Error is a sentinel, such as ErrClosed, of one package. It matches, by [errors.Is],
// the sentinels of other packages with the same label: to learn why a call was
// refused, the caller need not know which layer has refused it.
type Error struct{ pkg, label, text string }

// New returns the sentinel of a package. The label is a stable short word, such as
// "closed". It says nothing about the package.
//
// The result is an error, so that no variable needs to be declared as one: with a variable
// of a type error go doc lists no constructor that may fail under the type that it makes.
func New(pkg, label, text string) error { return &Error{pkg, label, text} }

func (e *Error) Error() string { return e.pkg + ": " + e.text }

// Label returns the stable word.
func (e *Error) Label() string { return e.label }

// Is reports whether the target is a sentinel of the same label.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.label == e.label
}

// Other is the label of an error that has none of its own.
const Other = "other"

// Label returns the label of an error, or of the first error in its tree that has one.
func Label(err error) string {
	if labelled, ok := errors.AsType[interface {
		error
		Label() string
	}](err); ok {
		return labelled.Label()
	}
	return Other
}

// Round returns a duration with as many digits as a message needs.
func Round(d time.Duration) time.Duration {
	size := max(d, -d)
	switch {
	case size >= time.Hour:
		return d.Round(time.Second)
	case size >= time.Second:
		return d.Round(time.Millisecond)
	case size >= time.Millisecond:
		return d.Round(time.Microsecond)
	}
	return d
}
