package shaper_test

import (
	"runtime"
	"testing"
)

// skipWithoutPreemption skips a test whose goroutines spin until a timer fires: on the
// one thread of WebAssembly they keep it from firing.
func skipWithoutPreemption(t *testing.T) {
	t.Helper()
	if runtime.GOARCH == "wasm" {
		t.Skip("a goroutine that spins is not preempted here")
	}
}
