package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/sluice-go/sluice/internal/reason"
)

var (
	// ErrFull is returned by [Queue.TrySubmit] when as many jobs wait, or are delayed, as may.
	ErrFull = errors.New("queue: full")

	// ErrClosed is returned by [Queue.Submit] and [Queue.TrySubmit] once [Queue.Stop],
	// [Queue.Shutdown] or [Queue.Close] was called. It matches, by [errors.Is], what bears its
	// name in the other packages of this module.
	ErrClosed = reason.New("queue", "closed", "closed")

	// ErrExpired is the reason of the [UnrunError] of a job that would have started after its
	// [NotAfter].
	ErrExpired = errors.New("queue: expired")

	// ErrGoexit is the Value of the [PanicError] of a job that called [runtime.Goexit], which
	// is what the FailNow and Fatal methods of package testing do. errors.Is(err, ErrGoexit)
	// tells it apart from a panic.
	ErrGoexit = errors.New("runtime.Goexit called")

	errZeroQueue  = errors.New("queue: zero Queue: make one with New")
	errNilContext = errors.New("queue: nil context")
	errNilJob     = errors.New("queue: nil job")
	errNilLine    = errors.New("queue: nil line: must be a Shaper")
	errNilHandle  = errors.New("queue: nil function for the items")
	errNilSource  = errors.New("queue: nil source")
	errJobContext = errors.New("queue: WithJobContext is for Drain")
	errNoMessage  = errors.New("Take returned a nil message")
	errNoJob      = errors.New("neither a job nor an error")
)

// A PanicError says that a job did not return: it panicked or called [runtime.Goexit]. It
// matches what the job panicked with, if that is an error. A Source that does the same has failed
// for good, with this error.
type PanicError struct {
	Value any    // the value of the panic; ErrGoexit if it called runtime.Goexit
	Stack []byte // the stack at that moment, as formatted by runtime/debug.Stack
}

// Error returns the value without the stack.
func (e *PanicError) Error() string {
	if e.Value == ErrGoexit {
		return "queue: " + ErrGoexit.Error()
	}
	return fmt.Sprintf("queue: panic: %v", e.Value)
}

// Unwrap returns Value if it is an error, and nil otherwise.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// An UnrunError hands an accepted job that will not run to the error handler: the item of a
// [Queue], or the [Message] of a [Drain]. It matches Err, the reason.
type UnrunError[T any] struct {
	Item T
	Err  error
}

// Error returns the reason with a prefix.
func (e *UnrunError[T]) Error() string { return fmt.Sprintf("queue: job not run: %v", e.Err) }

// Unwrap returns the reason.
func (e *UnrunError[T]) Unwrap() error { return e.Err }

func (e *UnrunError[T]) lost() {}

// A messageError is what a method of a message has returned.
type messageError struct {
	method string
	err    error
}

func (e *messageError) Error() string {
	return fmt.Sprintf("queue: %s of a message: %v", e.method, e.err)
}
func (e *messageError) Unwrap() error { return e.err }
func (e *messageError) lost()         {}

// logLost is the error handler where none was set. It logs what would otherwise leave no
// trace but a count.
func logLost(err error) {
	if p, ok := errors.AsType[*PanicError](err); ok {
		slog.LogAttrs(context.Background(), slog.LevelError, err.Error(), slog.String("stack", string(p.Stack)))
		return
	}
	if _, ok := errors.AsType[interface {
		error
		lost()
	}](err); ok {
		slog.LogAttrs(context.Background(), slog.LevelError, err.Error())
	}
}
