package sluice_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every piece of Go in the README stands, line by line, in an example that is
// compiled and run.
func TestREADMEIsCompiled(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	files, err := filepath.Glob("*/example_test.go")
	require.NoError(t, err)
	var examples strings.Builder
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		examples.WriteString(unindented(string(text)))
	}
	blocks := strings.Split(string(readme), "```go\n")[1:]
	assert.GreaterOrEqual(t, len(blocks), 5)
	for _, block := range blocks {
		code, _, ok := strings.Cut(block, "```")
		require.True(t, ok, "a block of code that does not end")
		assert.Contains(t, examples.String(), unindented(code))
	}
}

func unindented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimLeft(line, " \t"))
	}
	return b.String()
}
