package queue

import "runtime/debug"

// contain calls f, which is user code, and then settle with its outcome: the error that f
// returned, or a *PanicError.
//
// settle is called exactly once whatever f does, and what must happen belongs there: a
// panic ends in contain, but nothing can stop a Goexit. Then settle and the deferred
// calls further out still run, and after them the goroutine is gone. So settle ends with
// whatever else may call Goexit, such as the error handler.
func contain(f func() error, settle func(error)) {
	var err error
	returned := false
	defer func() {
		if !returned {
			err = abrupt(recover())
		}
		settle(err)
	}()
	err = f()
	returned = true
}

// abrupt describes the end of a function that did not return. It runs on top of the
// frames that ended, so the stack still shows where.
func abrupt(recovered any) *PanicError {
	if recovered == nil {
		// Not even panic(nil) recovers as nil, so it was Goexit.
		recovered = ErrGoexit
	}
	return &PanicError{Value: recovered, Stack: debug.Stack()}
}

// report calls the error handler. A panic of the handler itself is logged: nothing else
// would tell of it.
func (c *config) report(err error) {
	contain(func() error { c.handler(err); return nil }, func(err error) {
		if err != nil {
			logLost(err)
		}
	})
}
