package precise

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is for what must happen at all, however busy the machine is.
const patience = 30 * time.Second

func newAlarm(r *releaser, fire func()) *Alarm {
	return &Alarm{r: r, fire: fire, place: nowhere}
}

// await returns once c has got a value or is closed.
func await[T any](t *testing.T, c <-chan T) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		require.FailNow(t, "nothing has come")
	}
}

// eventually returns once cond holds.
func eventually(t *testing.T, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(end), "it never came true")
	}
}

// flush returns once all functions that r has begun to call have returned.
func flush(t *testing.T, r *releaser) {
	t.Helper()
	c := make(chan struct{})
	newAlarm(r, func() { close(c) }).Set(0)
	await(t, c)
}

// block keeps r's goroutine busy until release is called.
func block(t *testing.T, r *releaser) (release func()) {
	t.Helper()
	busy, free := make(chan struct{}), make(chan struct{})
	newAlarm(r, func() { close(busy); <-free }).Set(0)
	await(t, busy)
	return func() { close(free) }
}

// goroutines counts the release goroutines of all releasers, those included that have
// not begun to run.
func goroutines() int {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	return bytes.Count(buf, []byte("\ncreated by github.com/sluice-go/sluice/shaper/internal/precise.(*releaser)."))
}

func stateOf(r *releaser) state {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.goroutine
}
