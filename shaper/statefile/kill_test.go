package statefile_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/shaper/statefile"
)

// T is the interval of the processes that are killed.
const T = 600 * time.Millisecond

// A child sends as fast as it may, and saves before it sends.
func child(path string) error {
	pace, err := shaper.New(scheduler.Per(1, T))
	if err != nil {
		return err
	}
	kept, err := statefile.Keep(path, pace, time.Hour)
	if err != nil {
		return err
	}
	for {
		if err := pace.Wait(context.Background()); err != nil {
			return err
		}
		if err := kept.Save(); err != nil {
			return err
		}
		fmt.Println("sent")
	}
}

// Processes that are killed at random instants keep the pace together.
func TestKill(t *testing.T) {
	if path := os.Getenv("STATEFILE_CHILD"); path != "" {
		t.Fatal(child(path))
	}
	if testing.Short() {
		t.Skip("it starts processes")
	}
	path := filepath.Join(t.TempDir(), "pace")
	begin := time.Now()
	sent := 0
	const kills = 12
	for range kills {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKill$", "-test.count=1")
		cmd.Env = append(os.Environ(), "STATEFILE_CHILD="+path)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		kill := time.AfterFunc(time.Duration(150+rand.IntN(150))*time.Millisecond, func() { _ = cmd.Process.Kill() })
		for lines := bufio.NewScanner(out); lines.Scan(); {
			require.Equal(t, "sent", lines.Text())
			sent++
			most := 1 + int((time.Since(begin)+5*time.Millisecond)/T) // its tolerance for late timers
			assert.LessOrEqual(t, sent, most)
		}
		_ = cmd.Wait()
		kill.Stop()
	}
	t.Logf("%d sent in %v by %d processes", sent, time.Since(begin), kills)
	assert.Greater(t, sent, 2)
}
