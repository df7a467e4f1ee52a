package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/sluice-go/sluice/internal/reason"
)

var (
	// ErrFull is returned by [Queue.TrySubmit] when as many jobs wait as the capacity allows.
	ErrFull = errors.New("queue: full")

	// ErrClosed is returned by [Queue.Submit] and [Queue.TrySubmit] once [Queue.Shutdown] or
	// [Queue.Close] was called. It matches, by [errors.Is], what bears its name in the other
	// packages of this module.
	ErrClosed = reason.New("queue", "closed", "closed")

	// ErrGoexit is the Value of the [PanicError] of a job that called [runtime.Goexit], which
	// is what the FailNow and Fatal methods of package testing do. errors.Is(err, ErrGoexit)
	// tells it apart from a panic.
	ErrGoexit = errors.New("runtime.Goexit called")

	errZeroQueue  = errors.New("queue: zero Queue: make one with New")
	errNilContext = errors.New("queue: nil context")
	errNilJob     = errors.New("queue: nil job")
	errNilWaiter  = errors.New("queue: nil waiter")
	errNilSource  = errors.New("queue: nil source")
	errCapacity   = errors.New("queue: WithCapacity does not apply to Drain: it has no line")
	errNoMessage  = errors.New("queue: source: Next returned neither a job nor an error")
)

// A PanicError says that a job did not return: it panicked or called [runtime.Goexit]. It
// matches what the job panicked with, if that is an error. A Waiter or Source that does
// the same has failed for good, with this error.
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

// An UnrunError hands an accepted job that will not run to the error handler. It matches
// Err, the reason.
type UnrunError struct {
	Job Job
	Err error
}

// Error returns the reason with a prefix.
func (e *UnrunError) Error() string { return fmt.Sprintf("queue: job not run: %v", e.Err) }

// Unwrap returns the reason.
func (e *UnrunError) Unwrap() error { return e.Err }

// logLost is the error handler where none was set. It logs what would otherwise leave no
// trace but a count.
func logLost(err error) {
	if p, ok := errors.AsType[*PanicError](err); ok {
		slog.LogAttrs(context.Background(), slog.LevelError, err.Error(), slog.String("stack", string(p.Stack)))
		return
	}
	if _, ok := errors.AsType[*UnrunError](err); ok {
		slog.LogAttrs(context.Background(), slog.LevelError, err.Error())
	}
}
