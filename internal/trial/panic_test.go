//go:build !js && !wasip1

package trial

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestPlanted panics in the way that the environment names: TestTheLineOutlivesThePanic
// runs it in a process of its own.
func TestPlanted(t *testing.T) {
	where := os.Getenv("TRIAL_PANIC")
	if where == "" {
		t.Skip("it is for a process of its own")
	}
	run := Bubble
	if where == "test" {
		run = Run
	}
	run(t, 5, func(t *testing.T, rng *rand.Rand) {
		if rng.Uint64() == rand.NewPCG(7, 2).Uint64() {
			panicIn(where)
		}
	})
}

func panicIn(where string) {
	switch where {
	case "test", "bubble":
		panic("planted")
	case "goroutine":
		go panic("planted")
	case "timer":
		time.AfterFunc(time.Second, func() { panic("planted") })
	case "deadlock":
		select {}
	}
	time.Sleep(time.Minute)
}

// A panic in another goroutine ends the process at once, logs unshown.
func TestTheLineOutlivesThePanic(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts processes of its own, which an emulator cannot")
	}
	self, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	for _, where := range []string{"test", "bubble", "goroutine", "timer", "deadlock"} {
		t.Run(where, func(t *testing.T) {
			cmd := exec.Command(self, "-test.run", "^TestPlanted$")
			cmd.Env = append(os.Environ(), "TRIAL_PANIC="+where, seedVar+"=7", runVar+"=", runsVar+"=5")
			out, err := cmd.CombinedOutput()
			assert.Error(t, err)
			assert.Contains(t, string(out), "SLUICE_SEED=7 SLUICE_RUN=2 "+
				"go test github.com/sluice-go/sluice/internal/trial -run '^TestPlanted$'")
		})
	}
}
