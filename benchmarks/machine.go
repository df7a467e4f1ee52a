package main

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
)

// machine is what the figures depend on.
type machine struct {
	cpu    string
	cores  int
	system string
	goes   string
	commit string
	peers  []string // modules with their versions
}

func lookAround() machine {
	return machine{
		cpu:    field("/proc/cpuinfo", "model name"),
		cores:  runtime.GOMAXPROCS(0),
		system: strings.TrimSpace(runtime.GOOS + "/" + runtime.GOARCH + " " + contents("/proc/sys/kernel/osrelease")),
		goes:   runtime.Version(),
		commit: commit(),
		peers:  peers(),
	}
}

// contents returns a small file, or nothing.
func contents(file string) string {
	b, _ := os.ReadFile(file)
	return strings.TrimSpace(string(b))
}

// field returns the value of the first line "key : value" of a file.
func field(file, key string) string {
	for line := range strings.Lines(contents(file)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return "unknown"
}

// commit returns what git says is checked out, marked if there are changes.
func commit() string {
	head, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	id := strings.TrimSpace(string(head))
	if status, err := exec.Command("git", "status", "--porcelain").Output(); err != nil || len(status) > 0 {
		id += "-dirty"
	}
	return id
}

// peers returns the modules of the peers with the versions that were built in.
func peers() []string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	var all []string
	for _, m := range info.Deps {
		if measured[m.Path] {
			all = append(all, m.Path+" "+m.Version)
		}
	}
	return all
}

// measured are the modules of the peers, among all that the program is built of.
var measured = map[string]bool{
	"github.com/failsafe-go/failsafe-go": true,
	"github.com/juju/ratelimit":          true,
	"github.com/sethvargo/go-limiter":    true,
	"github.com/throttled/throttled/v2":  true,
	"go.uber.org/ratelimit":              true,
	"golang.org/x/time":                  true,
}
