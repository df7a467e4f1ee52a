package shaper_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// The process of these tests is made again, with this set, as the one that is stopped.
const stoppedVar = "SLUICE_TEST_STOPPED"

// A process that is stopped while a call waits, and goes on in a closed time, lets no call
// leave in it. On a busy machine it may be stopped or go on too late for that to be seen, so
// it is tried again.
func TestProcessStoppedAcrossTheBeginningOfAClosedTime(t *testing.T) {
	if os.Getenv(stoppedVar) != "" {
		runStopped()
		return
	}
	if testing.Short() {
		t.Skip("it starts a process of its own, which an emulator cannot")
	}
	for range 8 {
		if stopAndGoOn(t) || t.Failed() {
			return
		}
	}
	t.Skip("too busy a machine: the process never went on within the closed time")
}

// A watched is a quiet schedule that notes what has left, and whether it was asked in the
// closed time about the present.
type watched struct {
	quiet
	asked bool
	left  []time.Duration
}

func (w *watched) Next(t time.Time, ahead, n int64) time.Time {
	next := w.quiet.Next(t, ahead, n)
	w.asked = w.asked || next.After(t) && !t.After(time.Now())
	return next
}

func (w *watched) Commit(due, left time.Time, n int64) {
	w.quiet.Commit(due, left, n)
	w.left = append(w.left, left.Sub(w.start))
}

// runStopped lets four calls leave 60 ms apart, with a closed time from 100 ms to 400 ms.
func runStopped() {
	w := &watched{quiet: quiet{start: time.Now(), open: 100 * ms, shut: 300 * ms}}
	s, err := shaper.New(scheduler.Every(60*ms), shaper.WithLimits(w))
	if err != nil {
		panic(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := s.Wait(context.Background()); err != nil {
				panic(err)
			}
		})
	}
	awaitWaiting(func() int64 { return s.Stats().Waiting + s.Stats().Left - 1 }, 3)
	fmt.Println("started")
	wg.Wait()
	fmt.Println("left", len(w.left), "breaches", w.breaches, "asked", w.asked)
}

// stopAndGoOn reports whether the process went on in the closed time and asked then.
func stopAndGoOn(t *testing.T) bool {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), stoppedVar+"=1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "started\n", first)
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	time.Sleep(200 * ms) // into the closed time
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	rest, err := io.ReadAll(lines)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())
	assert.Contains(t, string(rest), "left 4 breaches [] ")
	return strings.Contains(string(rest), "asked true")
}
