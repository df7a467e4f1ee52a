package clienttest

import (
	"flag"
	"os"
	"testing"
)

// The tests hardly work, they wait for the real clock: so more of them run side by side
// than there are cores.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "64"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
