package statefile_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/shaper/statefile"
)

// What is left of a quota is known after a restart.
func ExampleKeep() {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "quota.state")

	for process := 1; process <= 3; process++ {
		quota, err := shaper.New(scheduler.PerDay(2), shaper.WithBurst(2))
		if err != nil {
			log.Fatal(err)
		}
		kept, err := statefile.Keep(path, quota, time.Second) // loads it, and saves it once a second
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("process", process, "sends:", quota.Allow())
		if err := kept.Close(); err != nil { // saves it for the last time
			log.Fatal(err)
		}
	}
	// Output:
	// process 1 sends: true
	// process 2 sends: true
	// process 3 sends: false
}
