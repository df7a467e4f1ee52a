package trial

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"sync"
)

// labelled labels this goroutine, and those that it starts, with the line until the
// returned function is called. A panic in a goroutine that is not the test's own ends the
// process before anything that was logged is shown; the trace, which names the labels, is
// all that there is.
func labelled(line string) (restore func()) {
	labelsInTraces()
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("repeat", line)))
	return func() { pprof.SetGoroutineLabels(context.Background()) }
}

// labelsInTraces has traces of panics show all goroutines, with their labels: the
// goroutine of a timer inherits none, but the test that waits for it has them.
var labelsInTraces = sync.OnceFunc(func() {
	settings := strings.TrimPrefix(os.Getenv("GODEBUG")+",tracebacklabels=1", ",")
	os.Setenv("GODEBUG", settings)
	debug.SetTraceback("all")
})
